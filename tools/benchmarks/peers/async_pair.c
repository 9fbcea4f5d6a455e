// The pair that every figure of `async` is compared with: cuMemAllocFromPoolAsync and cuMemFreeAsync in a loop, in C.
//
// A shared library, so that a JVM can call it between rounds of its own, in one process, on one pool and stream:
//   gcc -O3 -shared -fPIC -o libasync_pair.so async_pair.c -ldl -lpthread
// It needs no CUDA headers. Functions return nanoseconds, or minus the driver's result if a call failed.
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

typedef int (*allocate_fn)(uint64_t *address, size_t bytes, void *pool, void *stream);
typedef int (*free_fn)(uint64_t address, void *stream);
typedef int (*current_fn)(void *context);

static allocate_fn allocate;
static free_fn release;
static current_fn set_current;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Finds the driver's functions; 0, or -1 if there are none.
int async_pair_open(const char *library) {
    void *driver = dlopen(library, RTLD_NOW);
    if (!driver) return fprintf(stderr, "%s\n", dlerror()), -1;
    allocate = (allocate_fn)dlsym(driver, "cuMemAllocFromPoolAsync");
    release = (free_fn)dlsym(driver, "cuMemFreeAsync");
    set_current = (current_fn)dlsym(driver, "cuCtxSetCurrent");
    return allocate && release && set_current ? 0 : -1;
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

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    void *context, *pool, *stream;
    size_t bytes;
    int64_t pairs, begin, end;
    int code;
};

static void *work(void *argument) {
    struct worker *w = argument;
    w->code = set_current(w->context);
    pthread_barrier_wait(w->start);
    w->begin = now();
    if (!w->code) w->code = loop(w->pool, w->stream, w->bytes, w->pairs);
    w->end = now();
    return NULL;
}

// Pairs on so many threads at once, each on its own stream; from the first begin to the last end.
int64_t async_pair_threads_nanos(
    void *context, void *pool, void **streams, int32_t threads, size_t bytes, int64_t pairs) {
    struct worker workers[threads];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, threads);
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){
            .start = &start, .context = context, .pool = pool, .stream = streams[i], .bytes = bytes, .pairs = pairs};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return -1;
    }
    int64_t begin = INT64_MAX, end = 0;
    int code = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].begin < begin) begin = workers[i].begin;
        if (workers[i].end > end) end = workers[i].end;
        if (workers[i].code) code = workers[i].code;
    }
    pthread_barrier_destroy(&start);
    return code ? -code : end - begin;
}
