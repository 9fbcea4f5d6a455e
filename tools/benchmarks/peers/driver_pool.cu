// The driver's own pool in C++, as an allocator that Cistern loads: it keeps all that it frees.
//
//   nvcc -O3 -shared -Xcompiler -fPIC -o libdriver_pool.so driver_pool.cu
#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <cstdint>

namespace {

constexpr int kDevices = 16;

cudaMemPool_t pool(int device) {
  static cudaMemPool_t* pools = [] {
    static cudaMemPool_t made[kDevices] = {};
    int count = 0;
    cudaGetDeviceCount(&count);
    for (int i = 0; i < count && i < kDevices; i++) {
      cudaMemPoolProps props = {};
      props.allocType = cudaMemAllocationTypePinned;
      props.location = {cudaMemLocationTypeDevice, i};
      uint64_t all = UINT64_MAX;
      cudaMemPoolCreate(&made[i], &props);
      cudaMemPoolSetAttribute(made[i], cudaMemPoolAttrReleaseThreshold, &all);
    }
    return made;
  }();
  return pools[device];
}

}  // namespace

extern "C" {

void* my_malloc(ssize_t size, int device, cudaStream_t stream) {
  void* block = nullptr;
  if (cudaMallocFromPoolAsync(&block, size, pool(device), stream) != cudaSuccess) {
    cudaGetLastError();  // or the next call would return it
    return nullptr;
  }
  return block;
}

void my_free(void* block, ssize_t size, int device, cudaStream_t stream) { cudaFreeAsync(block, stream); }

void my_reset(void) {
  int device = 0;
  cudaGetDevice(&device);
  cudaMemPoolTrimTo(pool(device), 0);
}
}
