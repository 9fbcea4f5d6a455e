// An allocator of the kind that people write first: it does not look whether cudaMalloc worked, returns what its variable
// holds then, and tells of everything on standard output. And some that are worse, for tests.
//
//   nvcc -shared -Xcompiler -fPIC -o libcareless.so careless_alloc.cu
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/types.h>

#include <cstdlib>
#include <iostream>

extern "C" {

void* my_malloc(ssize_t size, int device, cudaStream_t stream) {
  void* block;
  cudaMalloc(&block, size);
  std::cout << "took " << block << " of " << size << std::endl;
  return block;
}

void my_free(void* block, ssize_t size, int device, cudaStream_t stream) {
  std::cout << "gave " << block << " of " << size << std::endl;
  cudaFree(block);
}

// Leaves the thread without a context.
void* switching_malloc(ssize_t size, int device, cudaStream_t stream) {
  void* block = nullptr;
  if (cudaMalloc(&block, size) != cudaSuccess) block = nullptr;
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"))(nullptr);
  return block;
}

// Gives each block but the first the second half of the one before.
void* overlapping_malloc(ssize_t size, int device, cudaStream_t stream) {
  static char* last = nullptr;
  if (last != nullptr) return last + size / 2;
  cudaMalloc(reinterpret_cast<void**>(&last), 4 * size);
  return last;
}

void overlapping_free(void* block, ssize_t size, int device, cudaStream_t stream) {}

// Memory of the host.
void* host_malloc(ssize_t size, int device, cudaStream_t stream) {
  void* block;
  return posix_memalign(&block, 256, size) == 0 ? block : nullptr;
}

void host_free(void* block, ssize_t size, int device, cudaStream_t stream) { std::free(block); }
}
