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
#include <time.h>

typedef int (*to_device_fn)(uint64_t target, const void *source, size_t bytes, void *stream);
typedef int (*to_host_fn)(void *target, uint64_t source, size_t bytes, void *stream);
typedef int (*on_device_fn)(uint64_t target, uint64_t source, size_t bytes, void *stream);
typedef int (*synchronize_fn)(void *stream);
typedef int (*launch_fn)(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    void *stream, void **arguments, void **extra);

static to_device_fn to_device;
static to_host_fn to_host;
static on_device_fn on_device;
static synchronize_fn synchronize;
static launch_fn launch;

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
    return to_device && to_host && on_device && synchronize && launch ? 0 : -1;
}

// kind: 0 from the host to the device, 1 back, 2 on the device.
int64_t copies_nanos(int32_t kind, uint64_t target, uint64_t source, size_t bytes, void *stream, int64_t count) {
    int64_t begin = now();
    int code = 0;
    for (int64_t i = 0; i < count && !code; i++) {
        code = kind == 0   ? to_device(target, (const void *)source, bytes, stream)
               : kind == 1 ? to_host((void *)target, source, bytes, stream)
                           : on_device(target, source, bytes, stream);
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
