// PyTorch's handles of cuBLAS: a thread's handle again and again, from 1, 4 and 16 threads; a thread that comes, asks for
// it and ends; cuBLAS's own creation, alone and from 16 threads; and a handle of each thread alone. Beside it stands
// io.cistern.benchmarks.HandleCosts. Prints a line each: median, lowest and highest of several rounds.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#undef CHECK  // PyTorch's means the opposite
#include "check.h"

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 7;

template <class F>
static double micros(F f) {
  auto start = Clock::now();
  f();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

static void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  printf("%s: %.1f (%.1f to %.1f)\n", what, values[values.size() / 2], values.front(), values.back());
}

// All threads begin at once; the time until the last has ended its loop.
template <class F>
static double together(int threads, F f) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++) {
    all.emplace_back([&] {
      f(true);  // warms up
      ready++;
      while (!go) {
      }
      f(false);
    });
  }
  while (ready < threads) {
  }
  return micros([&] {
    go = true;
    for (auto& thread : all) thread.join();
  });
}

static void get(int n) {
  for (int i = 0; i < n; i++) {
    auto handle = at::cuda::getCurrentCUDABlasHandle();
    asm volatile("" ::"r"(handle));
  }
}

template <class F>
static void threads_one_by_one(const char* what, F f) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; round++) {
    times.push_back(micros([&] {
                      for (int i = 0; i < 50; i++) std::thread(f).join();
                    }) /
                    50);
  }
  print(what, times);
}

static void create_and_destroy() {
  CHECK(cudaSetDevice(0));
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasDestroy(handle);
}

int main() {
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  c10::cuda::CUDACachingAllocator::init(1);
  c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  std::vector<double> creating, destroying;
  for (int i = 0; i < 30; i++) {
    cublasHandle_t handle;
    creating.push_back(micros([&] { cublasCreate(&handle); }));
    destroying.push_back(micros([&] { cublasDestroy(handle); }));
  }
  printf("first cublasCreate us: %.1f\n", creating.front());
  creating.erase(creating.begin());
  print("cublasCreate us", creating);
  print("cublasDestroy us", destroying);
  for (int threads : {1, 4, 16}) {
    std::vector<double> nanos;
    constexpr int kCalls = 100000;
    for (int round = 0; round < kRounds; round++) {
      nanos.push_back(1e3 * together(threads, [](bool warming) {
                        if (warming) CHECK(cudaSetDevice(0));
                        get(warming ? 1000 : kCalls);
                      }) /
                      kCalls);
    }
    char what[80];
    snprintf(what, sizeof what, "torch getCurrentCUDABlasHandle ns a call, %d threads", threads);
    print(what, nanos);
  }
  threads_one_by_one("a thread alone us", [] {});
  threads_one_by_one("a thread with PyTorch's handle us", [] {
    CHECK(cudaSetDevice(0));
    get(1);
  });
  threads_one_by_one("a thread that creates and destroys us", create_and_destroy);
  std::vector<double> at_once;
  size_t all_bytes = 0, before = 0, after = 0;
  for (int round = 0; round < kRounds; round++) {
    std::vector<cublasHandle_t> handles(16);
    CHECK(cudaMemGetInfo(&before, &all_bytes));
    std::vector<std::thread> all;
    at_once.push_back(micros([&] {
                        for (auto& handle : handles)
                          all.emplace_back([&] {
                            CHECK(cudaSetDevice(0));
                            CHECK(cublasCreate(&handle));
                          });
                        for (auto& thread : all) thread.join();
                      }) /
                      16);
    CHECK(cudaMemGetInfo(&after, &all_bytes));
    for (auto handle : handles) cublasDestroy(handle);
  }
  printf("MiB of the device for a handle: %.2f\n", (before - after) / 1048576.0 / 16);
  print("cublasCreate from 16 threads at once, each us", at_once);
  return 0;
}
