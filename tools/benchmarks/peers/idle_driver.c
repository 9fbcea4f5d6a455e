// A libcuda.so that does next to nothing: what is left of a pair of `async`, or of a launch, is what Java adds to the same loop in C.
//
//   gcc -O2 -shared -fPIC -o libidle_driver.so idle_driver.c -lpthread
//   gcc -O3 -shared -fPIC -o libasync_pair.so async_pair.c -ldl
//   export BENCHMARKS_JAVA_OPTS=-Dcistern.cuda.library=$PWD/libidle_driver.so
//   tools/benchmarks/java io.cistern.benchmarks.AsyncPair $PWD/libasync_pair.so
//
// What a real driver does to its caller, each allocation, free and launch:
//   IDLE_DRIVER_STEPS (0): turns of a loop under a lock that all threads share, as the driver has one.
//   IDLE_DRIVER_TOUCHED (0): cache lines of data that are read, IDLE_DRIVER_CODE (0): cache lines of code that are run, up
//   to 512, so that its caller's are gone. 10, 200 and 200 take 230 ns a pair on the development machine.
//   IDLE_DRIVER_STRICT: pairs are refused unless the context is current.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t u64;

static u64 contexts[2] = {0xc0, 0xc1};
static __thread u64 current;
static __thread u64 address;
static u64 addresses = 1ull << 33;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int steps, touched, code, strict;
static volatile char lines[1 << 24];

// Jumps through as many cache lines of code, at most 512.
void run_code_lines(int lines);
__asm__(".text\n.balign 64\nrun_code_lines:\n"
        ".rept 512\n dec %edi\n js 1f\n jmp 2f\n.balign 64\n2:\n.endr\n"
        "1: ret\n");

static int work(void) {
    if (strict && !current) return 201;
    if (steps) {
        pthread_mutex_lock(&lock);
        for (volatile int i = 0; i < steps; i++) {}
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < touched; i++) (void)lines[(64 * i) & (sizeof lines - 1)];
    run_code_lines(code);
    return 0;
}

static int number(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int cuInit(unsigned flags) {
    steps = number("IDLE_DRIVER_STEPS");
    touched = number("IDLE_DRIVER_TOUCHED");
    code = number("IDLE_DRIVER_CODE");
    strict = getenv("IDLE_DRIVER_STRICT") != NULL;
    return 0;
}
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int d) { snprintf(name, size, "Idle %d", d); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 1ull << 37; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = 1; return 0; }
int cuDevicePrimaryCtxRetain(u64 *c, int d) { *c = contexts[d]; return 0; }
int cuCtxGetCurrent(u64 *c) { *c = current; return 0; }
int cuCtxSetCurrent(u64 c) { current = c; return 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = *t = 1ull << 37; return 0; }
int cuMemPoolCreate(u64 *p, const void *q) { *p = 0x9001; return 0; }
int cuDeviceGetDefaultMemPool(u64 *p, int d) { *p = 0x9000; return 0; }
int cuDeviceGetMemPool(u64 *p, int d) { *p = 0x9000; return 0; }
int cuMemPoolGetAttribute(u64 p, int a, u64 *v) { *v = 0; return 0; }
static u64 streams = 0x5000;
int cuStreamCreate(u64 *s, unsigned f) { *s = __atomic_add_fetch(&streams, 16, __ATOMIC_RELAXED); return 0; }
int cuStreamCreateWithPriority(u64 *s, unsigned f, int p) { return cuStreamCreate(s, f); }

// One address a thread: pairs have one block at a time.
int cuMemAllocFromPoolAsync(u64 *a, size_t bytes, u64 pool, u64 stream) {
    if (!address) address = __atomic_add_fetch(&addresses, 1 << 26, __ATOMIC_RELAXED);
    *a = address;
    return work();
}
int cuMemAllocManaged(u64 *a, size_t bytes, unsigned f) { *a = 0; return 2; }
int cuMemAllocAsync(u64 *a, size_t bytes, u64 stream) { return cuMemAllocFromPoolAsync(a, bytes, 0, stream); }
int cuMemFreeAsync(u64 a, u64 stream) { return work(); }
int cuLaunchKernel() { return work(); }
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) { return posix_memalign(p, 4096, bytes); }
int cuMemFreeHost(void *p) { free(p); return 0; }

#define NOTHING(name) int name() { return 0; }
NOTHING(cuDeviceGetUuid_v2) NOTHING(cuDevicePrimaryCtxRelease_v2) NOTHING(cuCtxSynchronize) NOTHING(cuMemAlloc_v2)
NOTHING(cuMemFree_v2) NOTHING(cuMemGetAddressRange_v2)
NOTHING(cuMemHostRegister_v2) NOTHING(cuMemHostUnregister) NOTHING(cuMemHostGetDevicePointer_v2)
NOTHING(cuPointerGetAttribute) NOTHING(cuMemPoolDestroy) NOTHING(cuMemPoolTrimTo) NOTHING(cuMemPoolSetAttribute)
NOTHING(cuMemPoolSetAccess) NOTHING(cuMemPoolGetAccess) NOTHING(cuDeviceSetMemPool) NOTHING(cuMemAddressReserve)
NOTHING(cuMemAddressFree) NOTHING(cuMemCreate) NOTHING(cuMemRelease) NOTHING(cuMemMap) NOTHING(cuMemUnmap)
NOTHING(cuMemSetAccess) NOTHING(cuMemGetAccess) NOTHING(cuMemRetainAllocationHandle)
NOTHING(cuMemGetAllocationGranularity) NOTHING(cuMemcpyHtoDAsync_v2) NOTHING(cuMemcpyDtoHAsync_v2) NOTHING(cuMemcpyAsync)
NOTHING(cuMemcpyDtoDAsync_v2) NOTHING(cuMemcpy2DAsync_v2) NOTHING(cuMemcpyPeerAsync) NOTHING(cuMemsetD8Async)
NOTHING(cuMemsetD16Async) NOTHING(cuMemsetD32Async) NOTHING(cuMemRangeGetAttribute)
NOTHING(cuStreamDestroy_v2) NOTHING(cuStreamSynchronize) NOTHING(cuStreamQuery) NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamGetId) NOTHING(cuStreamGetFlags) NOTHING(cuLaunchHostFunc) NOTHING(cuCtxRecordEvent)
NOTHING(cuCtxGetStreamPriorityRange)
NOTHING(cuEventCreate) NOTHING(cuEventRecord) NOTHING(cuEventQuery) NOTHING(cuEventSynchronize)
NOTHING(cuEventElapsedTime) NOTHING(cuEventDestroy_v2) NOTHING(cuModuleLoadData) NOTHING(cuModuleUnload)
NOTHING(cuModuleGetFunction) NOTHING(cuDeviceCanAccessPeer) NOTHING(cuCtxEnablePeerAccess)
NOTHING(cuCtxDisablePeerAccess) NOTHING(cuMemPoolExportToShareableHandle) NOTHING(cuMemPoolImportFromShareableHandle)
NOTHING(cuMemPoolExportPointer) NOTHING(cuMemPoolImportPointer) NOTHING(cuIpcGetEventHandle)
NOTHING(cuIpcOpenEventHandle) NOTHING(cuIpcGetMemHandle)
NOTHING(cuDeviceGetGraphMemAttribute) NOTHING(cuDeviceGraphMemTrim) NOTHING(cuDeviceSetGraphMemAttribute)
NOTHING(cuGraphAddEmptyNode) NOTHING(cuGraphAddMemAllocNode) NOTHING(cuGraphAddMemFreeNode)
NOTHING(cuGraphAddMemsetNode) NOTHING(cuGraphCreate) NOTHING(cuGraphDestroy) NOTHING(cuGraphExecDestroy)
NOTHING(cuGraphExecUpdate_v2) NOTHING(cuGraphGetNodes) NOTHING(cuGraphInstantiateWithFlags) NOTHING(cuGraphLaunch)
NOTHING(cuGraphNodeGetDependencies_v2) NOTHING(cuGraphRetainUserObject)
NOTHING(cuStreamBeginCapture_v2) NOTHING(cuStreamEndCapture) NOTHING(cuStreamGetCaptureInfo_v3)
NOTHING(cuStreamIsCapturing) NOTHING(cuThreadExchangeStreamCaptureMode) NOTHING(cuUserObjectCreate)
NOTHING(cuUserObjectRelease)
