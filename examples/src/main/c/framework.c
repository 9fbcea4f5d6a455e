/* A native library that allocates through two functions that somebody gave it, as frameworks do.

   cc -shared -fPIC -o libframework.so framework.c */
#include <stddef.h>
#include <sys/types.h>

typedef void* (*malloc_function)(ssize_t size, int device, void* stream);
typedef void (*free_function)(void* block, ssize_t size, int device, void* stream);

static malloc_function allocate;
static free_function release;

void framework_set_allocator(malloc_function m, free_function f) {
    allocate = m;
    release = f;
}

/* Takes layers of rising size, then gives them back; returns how many it got. */
int framework_train(int layers, int device) {
    void* blocks[64] = {NULL};
    int got = 0;
    for (int i = 0; i < layers && i < 64; i++) {
        blocks[i] = allocate((i + 1) * 1024l, device, NULL);
        got += blocks[i] != NULL;
    }
    for (int i = 0; i < layers && i < 64; i++) {
        if (blocks[i] != NULL) {
            release(blocks[i], (i + 1) * 1024l, device, NULL);
        }
    }
    return got;
}
