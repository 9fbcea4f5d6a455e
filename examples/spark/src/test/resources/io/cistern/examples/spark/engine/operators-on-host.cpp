// Runs the kernels of operators.cu on the host: two blocks of four threads, one block after the other.
#include <pthread.h>
#define __global__
#define __device__
#define __shared__ static
struct Extent { unsigned x; };
static thread_local Extent blockIdx{0}, threadIdx{0};
static Extent blockDim{4}, gridDim{2};
static pthread_barrier_t barrier;

static void __syncthreads() { pthread_barrier_wait(&barrier); }

static unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}

static unsigned long long atomicCAS(unsigned long long* at, unsigned long long expected, unsigned long long value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

@KERNELS@

// All parameters are words or pointers; a kernel with fewer does not look at the rest.
typedef void (*Kernel)(word, word, word, word, word, word, word, word, word, word);
struct Thread { Kernel kernel; const word* arguments; unsigned block; unsigned thread; };

static void* runThread(void* argument) {
    Thread* self = (Thread*) argument;
    blockIdx.x = self->block;
    threadIdx.x = self->thread;
    const word* a = self->arguments;
    self->kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    return nullptr;
}

extern "C" void run(Kernel kernel, const word* arguments) {
    pthread_barrier_init(&barrier, nullptr, blockDim.x);
    for (unsigned block = 0; block < gridDim.x; block++) {
        pthread_t threads[4];
        Thread all[4];
        for (unsigned i = 0; i < blockDim.x; i++) {
            all[i] = {kernel, arguments, block, i};
            pthread_create(threads + i, nullptr, runThread, all + i);
        }
        for (unsigned i = 0; i < blockDim.x; i++) {
            pthread_join(threads[i], nullptr);
        }
    }
    pthread_barrier_destroy(&barrier);
}
