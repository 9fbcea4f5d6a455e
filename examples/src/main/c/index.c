/* A native library that takes device memory by itself, as libraries for vector search and others do. Where there is no
   driver of CUDA, it takes host memory instead.

   cc -shared -fPIC -o libindex.so index.c -ldl */
#include <dlfcn.h>
#include <stdlib.h>

typedef unsigned long long device_pointer;
typedef int (*allocate_function)(device_pointer* address, size_t size);
typedef int (*free_function)(device_pointer address);

static void* driver(const char* name) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == NULL ? NULL : dlsym(library, name);
}

/* How many bytes index_build will take. */
long index_bytes(long vectors, int dimensions) {
    return vectors * dimensions * 4;
}

/* Takes the memory of an index; returns its address, or 0. The caller's thread has a context. */
device_pointer index_build(long vectors, int dimensions) {
    size_t size = (size_t) index_bytes(vectors, dimensions);
    allocate_function allocate = (allocate_function) driver("cuMemAlloc_v2");
    device_pointer address = 0;
    if (allocate != NULL && allocate(&address, size) == 0) {
        return address;
    }
    return allocate == NULL ? (device_pointer) (size_t) malloc(size) : 0;
}

void index_destroy(device_pointer address) {
    free_function release = (free_function) driver("cuMemFree_v2");
    if (release != NULL) {
        release(address);
    } else {
        free((void*) (size_t) address);
    }
}
