// What copies and launches are compared with: the same calls of the driver in loops of C.
//
// A shared library, so that a JVM can call it between rounds of its own, in one process, on one stream:
//   gcc -O3 -shared -fPIC -o libbuffer_peers.so buffer_peers.c -ldl
// It needs no CUDA headers. Functions return nanoseconds until the stream is done (launches: until the last call has
// returned), or minus the driver's result if a call failed.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef int (*to_device_fn)(uint64_t target, const void *source, size_t bytes, void *stream);
typedef int (*to_host_fn)(void *target, uint64_t source, size_t bytes, void *stream);
typedef int (*on_device_fn)(uint64_t target, uint64_t source, size_t bytes, void *stream);
typedef int (*synchronize_fn)(void *stream);
typedef int (*create_fn)(void **event, unsigned flags);
typedef int (*record_fn)(void *event, void *stream);
typedef int (*event_fn)(void *event);
typedef int (*launch_fn)(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    void *stream, void **arguments, void **extra);

static to_device_fn to_device;
static to_host_fn to_host;
static on_device_fn on_device;
static synchronize_fn synchronize;
static launch_fn launch;
static create_fn event_create;
static record_fn event_record;
static event_fn event_synchronize;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Finds the driver's functions; 0, or -1 if there are none.
int buffer_peers_open(const char *library) {
    void *driver = dlopen(library, RTLD_NOW);
    if (!driver) return fprintf(stderr, "%s\n", dlerror()), -1;
    to_device = (to_device_fn)dlsym(driver, "cuMemcpyHtoDAsync_v2");
    to_host = (to_host_fn)dlsym(driver, "cuMemcpyDtoHAsync_v2");
    on_device = (on_device_fn)dlsym(driver, "cuMemcpyDtoDAsync_v2");
    synchronize = (synchronize_fn)dlsym(driver, "cuStreamSynchronize");
    launch = (launch_fn)dlsym(driver, "cuLaunchKernel");
    event_create = (create_fn)dlsym(driver, "cuEventCreate");
    event_record = (record_fn)dlsym(driver, "cuEventRecord");
    event_synchronize = (event_fn)dlsym(driver, "cuEventSynchronize");
    return to_device && to_host && on_device && synchronize && launch && event_create && event_record && event_synchronize ? 0
                                                                                                                          : -1;
}

// kind: 0 from the host to the device, 1 back, 2 on the device; each: whether each copy is waited for.
int64_t copies_nanos(
    int32_t kind, int32_t each, uint64_t target, uint64_t source, size_t bytes, void *stream, int64_t count) {
    int64_t begin = now();
    int code = 0;
    for (int64_t i = 0; i < count && !code; i++) {
        code = kind == 0   ? to_device(target, (const void *)source, bytes, stream)
               : kind == 1 ? to_host((void *)target, source, bytes, stream)
                           : on_device(target, source, bytes, stream);
        if (each && !code) code = synchronize(stream);
    }
    if (!code) code = synchronize(stream);
    return code ? -code : now() - begin;
}

// Bytes alone, without the driver.
int64_t moves_nanos(uint64_t target, uint64_t source, size_t bytes, int64_t count) {
    int64_t begin = now();
    for (int64_t i = 0; i < count; i++) memcpy((void *)target, (const void *)source, bytes);
    return now() - begin;
}

// From the host to the device through two pieces of pinned memory in turns.
int64_t staged_nanos(
    int32_t each, uint64_t target, uint64_t source, size_t bytes, uint64_t pinned, size_t piece, void *stream,
    int64_t count) {
    static void *events[2];
    int code = 0, turn = 0;
    for (int i = 0; i < 2 && !code; i++) {
        if (!events[i]) code = event_create(&events[i], 2);
    }
    int64_t begin = now();
    for (int64_t i = 0; i < count; i++) {
        for (size_t at = 0; at < bytes && !code; at += piece, turn ^= 1) {
            char *there = (char *)pinned + turn * piece;
            code = event_synchronize(events[turn]);
            memcpy(there, (const char *)source + at, piece);
            if (!code) code = to_device(target + at, there, piece, stream);
            if (!code) code = event_record(events[turn], stream);
        }
        if (each && !code) code = synchronize(stream);
    }
    if (!code) code = synchronize(stream);
    return code ? -code : now() - begin;
}

// Launches of one thread with an address, a long and an int; after them the stream is waited for, untimed.
int64_t launches_nanos(void *function, uint64_t address, int64_t words, int32_t first, void *stream, int64_t count) {
    void *arguments[] = {&address, &words, &first};
    int64_t begin = now();
    int code = 0;
    for (int64_t i = 0; i < count && !code; i++) code = launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
    int64_t taken = now() - begin;
    if (!code) code = synchronize(stream);
    return code ? -code : taken;
}
