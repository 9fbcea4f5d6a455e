// NCCL's all-reduce from C++ between the GPUs of one process, timed as NcclBandwidth times: it reads lines
// "KIND BYTES ROUNDS" and answers each with the microseconds of one all-reduce.
//
// usage: nccl_peers GPUS    KIND: plain (cudaMalloc), registered (ncclMemAlloc and ncclCommRegister),
//        window (ncclMemAlloc and ncclCommWindowRegister, where this NCCL has it), else: -1
#include "check.h"
#include <cuda_runtime.h>
#include <nccl.h>
#include <sched.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static int gpus;
static std::vector<ncclComm_t> ranks;
static std::vector<cudaStream_t> streams;

// Buffers of one kind, all of the largest size, made when first asked for.
struct Memory {
  std::vector<void*> buffers;
  bool usable = true;
};

static constexpr size_t LARGEST = size_t{1} << 30;

static Memory make(const std::string& kind) {
  Memory memory;
  memory.buffers.resize(gpus);
  for (int i = 0; i < gpus; i++) {
    CHECK(cudaSetDevice(i));
    if (kind == "plain") {
      CHECK(cudaMalloc(&memory.buffers[i], LARGEST));
    } else {
      CHECK(ncclMemAlloc(&memory.buffers[i], LARGEST));
    }
    CHECK(cudaMemset(memory.buffers[i], 0, LARGEST));
  }
  if (kind == "registered") {
    for (int i = 0; i < gpus; i++) {
      void* handle;
      CHECK(ncclCommRegister(ranks[i], memory.buffers[i], LARGEST, &handle));
    }
  }
  if (kind == "window") {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
    std::vector<ncclWindow_t> windows(gpus);
    CHECK(ncclGroupStart());
    for (int i = 0; i < gpus; i++) {
      CHECK(ncclCommWindowRegister(ranks[i], memory.buffers[i], LARGEST, &windows[i], NCCL_WIN_COLL_SYMMETRIC));
    }
    CHECK(ncclGroupEnd());
    memory.usable = windows[0] != nullptr;
#else
    memory.usable = false;
#endif
  }
  return memory;
}

static void all_reduce(const Memory& memory, size_t bytes) {
  CHECK(ncclGroupStart());
  for (int i = 0; i < gpus; i++) {
    void* buffer = memory.buffers[i];
    CHECK(ncclAllReduce(buffer, buffer, bytes / sizeof(float), ncclFloat, ncclSum, ranks[i], streams[i]));
  }
  CHECK(ncclGroupEnd());
}

static void synchronize() {
  for (int i = 0; i < gpus; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamSynchronize(streams[i]));
  }
}

static double micros(const Memory& memory, size_t bytes, int rounds) {
  for (int i = 0; i < rounds / 4 + 1; i++) all_reduce(memory, bytes);
  synchronize();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; i++) all_reduce(memory, bytes);
  synchronize();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / rounds;
}

// The calling thread on the processor that NcclBandwidth has, if it is there; NCCL's own threads stay free.
static void pin() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(2, &one);
  sched_setaffinity(0, sizeof one, &one);
}

int main(int, char** arguments) {
  gpus = atoi(arguments[1]);
  ranks.resize(gpus);
  streams.resize(gpus);
  CHECK(ncclCommInitAll(ranks.data(), gpus, nullptr));
  for (int i = 0; i < gpus; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  pin();
  static const char* kinds[] = {"plain", "registered", "window"};
  Memory memories[3];
  bool made[3] = {};
  char kind[32];
  size_t bytes;
  int rounds;
  while (scanf("%31s %zu %d", kind, &bytes, &rounds) == 3) {
    double answer = -1;
    for (int i = 0; i < 3; i++) {
      if (strcmp(kind, kinds[i]) == 0) {
        if (!made[i]) memories[i] = make(kind);
        made[i] = true;
        if (memories[i].usable) answer = micros(memories[i], bytes, rounds);
      }
    }
    printf("%.3f\n", answer);
    fflush(stdout);
  }
}
