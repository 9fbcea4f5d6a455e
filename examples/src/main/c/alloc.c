/* An allocator in C with the two functions that Cistern, like PyTorch, looks for. It hands out memory of the host, so that it
   can be tried without a GPU, where it is only counted: for a GPU put cudaMalloc and cudaFree here.

   cc -shared -fPIC -o liballoc.so alloc.c */
#include <stdlib.h>
#include <sys/types.h>

void* my_malloc(ssize_t size, int device, void* stream) {
    void* block;
    (void) device;
    (void) stream;
    return posix_memalign(&block, 256, size) == 0 ? block : NULL; /* null is out of memory */
}

void my_free(void* block, ssize_t size, int device, void* stream) {
    (void) size;
    (void) device;
    (void) stream;
    free(block);
}
