// The pair that every figure of `async` is compared with: cuMemAllocFromPoolAsync and cuMemFreeAsync in a loop, in C.
//
// A shared library, so that a JVM can call it between rounds of its own, in one process, on one pool and stream:
//   gcc -O3 -shared -fPIC -o libasync_pair.so async_pair.c -ldl
// It needs no CUDA headers. Functions return nanoseconds, or minus the driver's result if a call failed.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

typedef int (*allocate_fn)(uint64_t *address, size_t bytes, void *pool, void *stream);
typedef int (*free_fn)(uint64_t address, void *stream);

static allocate_fn allocate;
static free_fn release;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Finds the driver's functions; 0, or -1 if there are none.
int64_t async_pair_open(const char *library) {
    void *driver = dlopen(library, RTLD_NOW);
    if (!driver) return fprintf(stderr, "%s\n", dlerror()), -1;
    allocate = (allocate_fn)dlsym(driver, "cuMemAllocFromPoolAsync");
    release = (free_fn)dlsym(driver, "cuMemFreeAsync");
    return allocate && release ? 0 : -1;
}

static int loop(void *pool, void *stream, size_t bytes, int64_t pairs) {
    for (int64_t i = 0; i < pairs; i++) {
        uint64_t address;
        int code = allocate(&address, bytes, pool, stream);
        if (!code) code = release(address, stream);
        if (code) return code;
    }
    return 0;
}

// Pairs on the calling thread, whose context is current.
int64_t async_pair_nanos(void *pool, void *stream, size_t bytes, int64_t pairs) {
    int64_t begin = now();
    int code = loop(pool, stream, bytes, pairs);
    return code ? -code : now() - begin;
}
