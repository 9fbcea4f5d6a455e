// What the programs of this folder share: the peers themselves, checks, the clock.
#pragma once
#include "check.h"
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

using Clock = std::chrono::steady_clock;
namespace torch_cuda = c10::cuda::CUDACachingAllocator;

inline double nanos_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// The middle, or the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// The peers: static functions, so that nothing is between a loop and the call.

// PyTorch's allocator; PYTORCH_CUDA_ALLOC_CONF chooses its options, and its backend.
struct Torch {
  static std::string name() {
    const char* options = getenv("PYTORCH_CUDA_ALLOC_CONF");
    return std::string("torch") + (options != nullptr ? std::string(":") + options : "");
  }
  static void open() { torch_cuda::init(1); }
  static void* allocate(size_t bytes, cudaStream_t stream) { return torch_cuda::raw_alloc_with_stream(bytes, stream); }
  static void free(void* block, cudaStream_t) { torch_cuda::raw_delete(block); }
  static int64_t reserved() { return torch_cuda::getDeviceStats(0).reserved_bytes[0].current; }
  static int64_t reserved_peak() { return torch_cuda::getDeviceStats(0).reserved_bytes[0].peak; }
};

// The driver's stream-ordered pool, which keeps its memory.
struct Async {
  static std::string name() { return "cudaMallocAsync"; }
  static void open() {
    uint64_t keep_all = UINT64_MAX;
    CHECK(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &keep_all));
  }
  // Throws std::bad_alloc where memory is out, as PyTorch throws an error of its own.
  static void* allocate(size_t bytes, cudaStream_t stream) {
    void* block;
    cudaError_t result = cudaMallocAsync(&block, bytes, stream);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    CHECK(result);
    return block;
  }
  static void free(void* block, cudaStream_t stream) { CHECK(cudaFreeAsync(block, stream)); }
  static int64_t reserved() { return attribute(cudaMemPoolAttrReservedMemCurrent); }
  static int64_t reserved_peak() { return attribute(cudaMemPoolAttrReservedMemHigh); }

 private:
  static cudaMemPool_t pool() {
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
  }
  static int64_t attribute(cudaMemPoolAttr which) {
    uint64_t bytes;
    CHECK(cudaMemPoolGetAttribute(pool(), which, &bytes));
    return static_cast<int64_t>(bytes);
  }
};

// Every block from the driver itself.
struct Malloc {
  static std::string name() { return "cudaMalloc"; }
  static void open() {}
  static void* allocate(size_t bytes, cudaStream_t) {
    void* block;
    CHECK(cudaMalloc(&block, bytes));
    return block;
  }
  static void free(void* block, cudaStream_t) { CHECK(cudaFree(block)); }
  static int64_t reserved() { return -1; }  // Not known.
  static int64_t reserved_peak() { return -1; }
};

// Calls body with an object of the peer of that name; false if there is none.
template <class F>
bool with_peer(const std::string& name, F body) {
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  if (name == "torch") {
    Torch::open();
    body(Torch{});
  } else if (name == "async") {
    Async::open();
    body(Async{});
  } else if (name == "malloc") {
    Malloc::open();
    body(Malloc{});
  } else {
    return false;
  }
  return true;
}
