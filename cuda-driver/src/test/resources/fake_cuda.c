// A libcuda.so that does nothing but tell: each function writes down its arguments as it got them and returns the result
// that the test asked for. Out-parameters get numbers that say where they came from.
//
// Compile-time variants: INIT_RESULT, DEVICES, WITHOUT_POOLS, WITHOUT_STREAM_SYNCHRONIZE.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef INIT_RESULT
#define INIT_RESULT 0
#endif
#ifndef DEVICES
#define DEVICES 2
#endif

typedef unsigned long long u64;
typedef int result;

// --- what the test reads and sets -----------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 20];
static size_t length;
static int recording;
static char failing[64];
static int failure;
static int attribute_value = 1;
static int retained[16];
static int gate;
static int strict;
static __thread u64 current;

const char *fake_text(void) { return text; }
void fake_record(int on) { recording = on; length = 0; text[0] = 0; }
void fake_fail(const char *name, int code) { snprintf(failing, sizeof failing, "%s", name); failure = code; }
void fake_attributes(int value) { attribute_value = value; }
void fake_set_context(u64 context) { current = context; }
u64 fake_context(void) { return current; }
// Pairs of pools want a primary context to be current, as drivers might.
void fake_strict(int on) { strict = on; }
void fake_gate(int open) { __atomic_store_n(&gate, open, __ATOMIC_RELEASE); }
int fake_retained(int device) { return retained[device]; }

static result call(const char *name, const char *format, ...) {
    if (recording) {
        va_list arguments;
        va_start(arguments, format);
        pthread_mutex_lock(&mutex);
        length += snprintf(text + length, sizeof text - length, "[%llx] %s(", current, name);
        length += vsnprintf(text + length, sizeof text - length, format, arguments);
        length += snprintf(text + length, sizeof text - length, ")\n");
        pthread_mutex_unlock(&mutex);
        va_end(arguments);
    }
    return failing[0] && strcmp(failing, name) == 0 ? failure : 0;
}

// The bytes of a struct, in hexadecimal.
static const char *bytes(const void *struct_, size_t size) {
    static __thread char hex[512];
    for (size_t i = 0; i < size; i++) sprintf(hex + 2 * i, "%02x", ((const unsigned char *)struct_)[i]);
    return hex;
}

#define SAY(...) return call(__func__ , __VA_ARGS__)
#define GIVE(pointer, value) (*(pointer) = (value))

static result wanting_context(void) { return strict && (current & ~1ull) != 0xc0 ? current ? 400 : 201 : 0; }

#define SAY_IN_CONTEXT(...) do { result code = call(__func__ , __VA_ARGS__); return code ? code : wanting_context(); } while (0)

// --- start, devices, contexts ---------------------------------------------------------------------------------------

result cuInit(unsigned flags) { call(__func__, "%u", flags); return INIT_RESULT; }
result cuDriverGetVersion(int *v) { GIVE(v, 13000); SAY(""); }
result cuDeviceGetCount(int *n) { GIVE(n, DEVICES); SAY(""); }
result cuDeviceGet(int *d, int ordinal) { GIVE(d, ordinal); SAY("%d", ordinal); }
result cuDeviceGetName(char *name, int size, int d) { snprintf(name, size, "Fake %d", d); SAY("%d, %d", size, d); }
#ifndef WITHOUT_POOLS
result cuDeviceGetUuid_v2(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i * 16 + d; SAY("%d", d); }
#endif
result cuDeviceTotalMem_v2(size_t *n, int d) { GIVE(n, 0x2000000000ull + d); SAY("%d", d); }
result cuDeviceGetAttribute(int *v, int a, int d) {
    if (a == 9999) return 1;
    GIVE(v, a == 75 ? 9 : a == 76 ? 0 : a == 119 ? 11 : attribute_value);
    SAY("%d, %d", a, d);
}
result cuDevicePrimaryCtxRetain(u64 *c, int d) { retained[d]++; GIVE(c, 0xc0 + d); SAY("%d", d); }
result cuDevicePrimaryCtxRelease_v2(int d) { retained[d]--; SAY("%d", d); }
#ifndef WITHOUT_POOLS
// Whoever registers is told on another thread: first of something unknown, then of 4 GiB over the budget.
struct notification { int type; u64 over; };
struct listener { void (*function)(struct notification *, u64, u64); u64 data; };
static void *notify(void *argument) {
    struct listener *listener = argument;
    listener->function(&(struct notification){2, 7}, listener->data, 0x120000000ull);
    listener->function(&(struct notification){1, 0x100000000ull}, listener->data, 0x120000000ull);
    free(listener);
    return NULL;
}
result cuDeviceRegisterAsyncNotification(int d, void (*function)(struct notification *, u64, u64), u64 data, u64 *handle) {
    result code = call(__func__, "%d", d);
    if (code) return code;
    GIVE(handle, 0x120000000ull);
    struct listener *listener = malloc(sizeof *listener);
    *listener = (struct listener){function, data};
    pthread_t thread;
    pthread_create(&thread, NULL, notify, listener);
    pthread_detach(thread);
    return 0;
}
result cuDeviceUnregisterAsyncNotification(int d, u64 handle) { SAY("%d, %llx", d, handle); }
#endif
result cuCtxSetCurrent(u64 c) { result code = call(__func__, "%llx", c); if (!code) current = c; return code; }
result cuCtxGetCurrent(u64 *c) { GIVE(c, current); SAY(""); }
result cuCtxGetDevice(int *d) { GIVE(d, (int) (current & 0xf)); SAY(""); }
result cuCtxSynchronize(void) { SAY(""); }
result cuCtxGetStreamPriorityRange(int *a, int *b) { GIVE(a, 0); GIVE(b, -5); SAY(""); }

// --- plain memory. An address tells the context in which it was allocated. ------------------------------------------

result cuMemAlloc_v2(u64 *p, size_t n) { GIVE(p, current); SAY("%zx", n); }
result cuMemFree_v2(u64 p) { SAY("%llx", p); }
result cuMemGetInfo_v2(size_t *f, size_t *t) { GIVE(f, 0x100000001ull); GIVE(t, 0x200000002ull); SAY(""); }
result cuMemGetAddressRange_v2(u64 *b, size_t *n, u64 p) { GIVE(b, p & ~0xfffull); GIVE(n, 0x300000003ull); SAY("%llx", p); }
result cuMemHostAlloc(void **p, size_t n, unsigned f) { GIVE(p, calloc(1, n)); SAY("%zx, %x", n, f); }
result cuMemHostGetDevicePointer_v2(u64 *d, void *p, unsigned f) { GIVE(d, (u64)p); SAY("%x", f); }
result cuMemFreeHost(void *p) { free(p); SAY(""); }
result cuMemHostRegister_v2(void *p, size_t n, unsigned f) { SAY("%p, %zx, %x", p, n, f); }
result cuMemHostUnregister(void *p) { SAY("%p", p); }
result cuPointerGetAttribute(void *v, int a, u64 p) {
    if (a == 9) GIVE((int *)v, -2); else if (a == 8 || a == 13) GIVE((char *)v, 1); else GIVE((u64 *)v, 0x700000000ull + a);
    SAY("%d, %llx", a, p);
}

// Mostly read, preferred on NUMA node 6, used by the host and device 3, last prefetched to several places.
result cuMemRangeGetAttribute(void *v, size_t n, int a, u64 p, size_t range) {
    static const int one[] = {0, 1, 0, 0, 0, 3, 6, 0, 9};
    int *out = v;
    if (a == 3) for (size_t i = 0; i < n / 4; i++) GIVE(out + i, i == 0 ? -1 : i == 1 ? 3 : -2); else GIVE(out, one[a]);
    SAY("%zx, %d, %llx, %zx", n, a, p, range);
}

result cuMemAllocManaged(u64 *p, size_t n, unsigned f) { GIVE(p, 0xe00000000ull); SAY("%zx, %x", n, f); }
#ifndef WITHOUT_POOLS
struct location { int type, id; };
result cuMemPrefetchAsync_v2(u64 p, size_t n, struct location l, unsigned f, u64 s) { SAY("%llx, %zx, %d %d, %x, %llx", p, n, l.type, l.id, f, s); }
result cuMemAdvise_v2(u64 p, size_t n, int a, struct location l) { SAY("%llx, %zx, %d, %d %d", p, n, a, l.type, l.id); }
result cuMemDiscardBatchAsync(u64 *p, size_t *n, size_t count, u64 f, u64 s) { SAY("%llx * %zx, %zd, %llx, %llx", p[0], n[0], count, f, s); }
#endif

// --- pools ----------------------------------------------------------------------------------------------------------

#ifndef WITHOUT_POOLS
result cuMemAllocAsync(u64 *p, size_t n, u64 s) { GIVE(p, 0xa00000000ull); SAY("%zx, %llx", n, s); }
result cuMemAllocFromPoolAsync(u64 *p, size_t n, u64 pool, u64 s) { GIVE(p, 0xb00000000ull); SAY_IN_CONTEXT("%zx, %llx, %llx", n, pool, s); }
result cuMemFreeAsync(u64 p, u64 s) { SAY_IN_CONTEXT("%llx, %llx", p, s); }
result cuMemPoolCreate(u64 *pool, const void *props) { GIVE(pool, 0xd00000000ull); SAY("%s", bytes(props, 88)); }
result cuMemPoolDestroy(u64 pool) { SAY("%llx", pool); }
result cuMemPoolTrimTo(u64 pool, size_t n) { SAY("%llx, %zx", pool, n); }
result cuMemPoolSetAttribute(u64 pool, int a, void *v) {
    if (a <= 3) SAY("%llx, %d, int %d", pool, a, *(int *)v);
    SAY("%llx, %d, long %llx", pool, a, *(u64 *)v);
}
result cuMemPoolGetAttribute(u64 pool, int a, void *v) {
    if (a <= 3) GIVE((int *)v, 1); else GIVE((u64 *)v, 0x500000000ull + a);
    SAY("%llx, %d", pool, a);
}
result cuMemPoolSetAccess(u64 pool, const void *d, size_t n) { SAY("%llx, %s, %zx", pool, bytes(d, 12 * n), n); }
result cuMemPoolGetAccess(int *flags, u64 pool, const void *l) { GIVE(flags, 3); SAY("%llx, %s", pool, bytes(l, 8)); }
result cuMemPoolExportToShareableHandle(void *handle, u64 pool, int type, u64 flags) {
    if (type == 1) GIVE((int *)handle, dup(1)); else memset(handle, 0xfa, 64);
    SAY("%llx, %d, %llx", pool, type, flags);
}
result cuMemPoolImportFromShareableHandle(u64 *pool, void *handle, int type, u64 flags) {
    GIVE(pool, 0xd00000003ull);
    if (type == 1) SAY("fd %d, %d, %llx", (int)(u64)handle, type, flags);
    SAY("%s, %d, %llx", bytes(handle, 64), type, flags);
}
result cuMemPoolExportPointer(void *data, u64 p) { memset(data, 0xab, 64); SAY("%llx", p); }
result cuMemPoolImportPointer(u64 *p, u64 pool, void *data) { GIVE(p, 0xa00000001ull); SAY("%llx, %s", pool, bytes(data, 64)); }
result cuDeviceGetDefaultMemPool(u64 *pool, int d) { GIVE(pool, 0xd00000001ull); SAY("%d", d); }
result cuDeviceGetMemPool(u64 *pool, int d) { GIVE(pool, 0xd00000002ull); SAY("%d", d); }
result cuDeviceSetMemPool(int d, u64 pool) { SAY("%d, %llx", d, pool); }
#endif

// --- other processes ------------------------------------------------------------------------------------------------

typedef struct { unsigned char reserved[64]; } handle64;
result cuIpcGetEventHandle(handle64 *h, u64 e) { memset(h, 0xe1, 64); SAY("%llx", e); }
result cuIpcOpenEventHandle(u64 *e, handle64 h) { GIVE(e, 0x400000002ull); SAY("%s", bytes(&h, 64)); }
result cuIpcGetMemHandle(handle64 *h, u64 p) { memset(h, 0x1c, 64); SAY("%llx", p); }

// --- virtual memory -------------------------------------------------------------------------------------------------

result cuMemAddressReserve(u64 *p, size_t n, size_t align, u64 hint, u64 flags) { GIVE(p, 0xe00000000ull); SAY("%zx, %zx, %llx, %llx", n, align, hint, flags); }
result cuMemAddressFree(u64 p, size_t n) { SAY("%llx, %zx", p, n); }
result cuMemCreate(u64 *h, size_t n, const void *prop, u64 flags) { GIVE(h, 0xf00000000ull); SAY("%zx, %s, %llx", n, bytes(prop, 32), flags); }
result cuMemRelease(u64 h) { SAY("%llx", h); }
result cuMemMap(u64 p, size_t n, size_t offset, u64 h, u64 flags) { SAY("%llx, %zx, %zx, %llx, %llx", p, n, offset, h, flags); }
result cuMemUnmap(u64 p, size_t n) { SAY("%llx, %zx", p, n); }
result cuMemSetAccess(u64 p, size_t n, const void *d, size_t count) { SAY("%llx, %zx, %s, %zx", p, n, bytes(d, 12 * count), count); }
result cuMemGetAccess(u64 *flags, const void *l, u64 p) { GIVE(flags, 1); SAY("%s, %llx", bytes(l, 8), p); }
result cuMemRetainAllocationHandle(u64 *h, u64 p) { GIVE(h, 0xf00000001ull); SAY("%llx", p); }
result cuMemGetAllocationGranularity(size_t *g, const void *prop, int option) { GIVE(g, 2ull << 20); SAY("%s, %d", bytes(prop, 32), option); }

// --- copies and fills -----------------------------------------------------------------------------------------------

// What is short is told by its bytes: where an array lies, nobody knows.
result cuMemcpyHtoDAsync_v2(u64 t, const void *s, size_t n, u64 stream) {
    if (n <= 16) SAY("%llx, bytes %s, %llx", t, bytes(s, n), stream);
    SAY("%llx, %p, %zx, %llx", t, s, n, stream);
}
result cuMemcpyDtoHAsync_v2(void *t, u64 s, size_t n, u64 stream) { SAY("%p, %llx, %zx, %llx", t, s, n, stream); }
result cuMemcpyDtoDAsync_v2(u64 t, u64 s, size_t n, u64 stream) { SAY("%llx, %llx, %zx, %llx", t, s, n, stream); }
typedef struct { size_t sx, sy; int st; const void *sh; u64 sd; void *sa; size_t sp, tx, ty; int tt; void *th; u64 td; void *ta; size_t tp, width, height; } rows;
result cuMemcpyAsync(u64 t, u64 s, size_t n, u64 stream) { SAY("%llx, %llx, %zx, %llx", t, s, n, stream); }
result cuMemcpy2DAsync_v2(const rows *c, u64 stream) { SAY("%d %llx +%zx, %d %llx +%zx, %zx * %zd, %llx", c->tt, c->td, c->tp, c->st, c->sd, c->sp, c->width, c->height, stream); }
#ifndef WITHOUT_POOLS
// The first and the last piece; attributes as bytes.
result cuMemcpyBatchAsync_v2(u64 *t, u64 *s, size_t *n, size_t count, const void *a, size_t *first, size_t kinds, u64 stream) {
    SAY("%llx <- %llx * %zx, %llx <- %llx * %zx, %zd, %s from %zd, %zd, %llx", t[0], s[0], n[0], t[count - 1], s[count - 1], n[count - 1], count, bytes(a, 24), first[0], kinds, stream);
}
#endif
result cuMemcpyPeerAsync(u64 t, u64 tc, u64 s, u64 sc, size_t n, u64 stream) { SAY("%llx, %llx, %llx, %llx, %zx, %llx", t, tc, s, sc, n, stream); }
result cuMemsetD8Async(u64 t, unsigned char v, size_t n, u64 stream) { SAY("%llx, %x, %zx, %llx", t, v, n, stream); }
result cuMemsetD16Async(u64 t, unsigned short v, size_t n, u64 stream) { SAY("%llx, %x, %zx, %llx", t, v, n, stream); }
result cuMemsetD32Async(u64 t, unsigned v, size_t n, u64 stream) { SAY("%llx, %x, %zx, %llx", t, v, n, stream); }

// --- streams and events ---------------------------------------------------------------------------------------------

result cuStreamCreate(u64 *s, unsigned f) { GIVE(s, 0x5001); SAY("%x", f); }
result cuStreamCreateWithPriority(u64 *s, unsigned f, int priority) { GIVE(s, 0x5002); SAY("%x, %d", f, priority); }
result cuStreamDestroy_v2(u64 s) { SAY("%llx", s); }
#ifndef WITHOUT_STREAM_SYNCHRONIZE
result cuStreamSynchronize(u64 s) {
    result code = call(__func__, "%llx", s);
    while (s == 0xb10c && !__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return code;
}
#endif
result cuStreamQuery(u64 s) { SAY("%llx", s); }
result cuStreamGetFlags(u64 s, unsigned *flags) { GIVE(flags, 1); SAY("%llx", s); }
result cuStreamWaitEvent(u64 s, u64 e, unsigned f) { SAY("%llx, %llx, %x", s, e, f); }
#ifndef WITHOUT_POOLS
result cuStreamGetId(u64 s, u64 *id) { GIVE(id, 0x600000006ull); SAY("%llx", s); }
#endif

struct host_call { void (*function)(u64); u64 data; };
static void *run(void *argument) {
    struct host_call *host = argument;
    host->function(host->data);
    free(host);
    return NULL;
}
result cuLaunchHostFunc(u64 s, void (*function)(u64), u64 data) {
    result code = call(__func__, "%llx", s);
    if (code) return code;
    struct host_call *host = malloc(sizeof *host);
    *host = (struct host_call){function, data};
    pthread_t thread;
    pthread_create(&thread, NULL, run, host);
    pthread_detach(thread);
    return 0;
}

result cuEventCreate(u64 *e, unsigned f) { GIVE(e, 0x4001); SAY("%x", f); }
result cuEventRecord(u64 e, u64 s) { SAY("%llx, %llx", e, s); }
result cuEventQuery(u64 e) { SAY("%llx", e); }
result cuEventSynchronize(u64 e) { SAY("%llx", e); }
result cuEventElapsedTime(float *ms, u64 a, u64 b) { GIVE(ms, 1.5f); SAY("%llx, %llx", a, b); }
result cuEventDestroy_v2(u64 e) { SAY("%llx", e); }

// --- graphs. The stream 0xca97 is captured. -------------------------------------------------------------------------

static u64 nodes[] = {0x700000001ull, 0x700000002ull};
static int thread_mode;
result cuStreamBeginCapture_v2(u64 s, int mode) { SAY("%llx, %d", s, mode); }
result cuStreamEndCapture(u64 s, u64 *g) { GIVE(g, 0x900000001ull); SAY("%llx", s); }
result cuStreamIsCapturing(u64 s, int *status) { GIVE(status, s == 0xca97); SAY("%llx", s); }
result cuStreamGetCaptureInfo_v3(u64 s, int *status, u64 *id, u64 *g, const u64 **n, const void **edges, size_t *count) {
    GIVE(status, s == 0xca97);
    if (s == 0xca97 && id) GIVE(id, 0x100000009ull);
    if (s == 0xca97 && g) GIVE(g, 0x900000001ull);
    if (s == 0xca97 && n) { GIVE(n, nodes); GIVE(count, 2); }
    SAY("%llx", s);
}
result cuThreadExchangeStreamCaptureMode(int *mode) { int old = thread_mode; thread_mode = *mode; *mode = old; SAY("%d", thread_mode); }
result cuGraphCreate(u64 *g, unsigned f) { GIVE(g, 0x900000002ull); SAY("%x", f); }
result cuGraphAddMemAllocNode(u64 *n, u64 g, const u64 *d, size_t count, u64 *p) {
    GIVE(n, nodes[0]); p[14] = 0xa00000003ull; SAY("%llx, %zx, %llx, %s", g, count, count ? d[count - 1] : 0, bytes(p, 112));
}
result cuGraphAddMemFreeNode(u64 *n, u64 g, const u64 *d, size_t count, u64 p) { GIVE(n, nodes[1]); SAY("%llx, %zx, %llx, %llx", g, count, count ? d[count - 1] : 0, p); }
result cuGraphAddMemsetNode(u64 *n, u64 g, const u64 *d, size_t count, const void *p, u64 c) {
    GIVE(n, nodes[1]); SAY("%llx, %zx, %llx, %s, %llx", g, count, count ? d[count - 1] : 0, bytes(p, 40), c);
}
result cuGraphAddEmptyNode(u64 *n, u64 g, const u64 *d, size_t count) { GIVE(n, nodes[1]); SAY("%llx, %zx, %llx", g, count, count ? d[count - 1] : 0); }
result cuGraphGetNodes(u64 g, u64 *n, size_t *count) { GIVE(count, 5); SAY("%llx", g); }
result cuGraphNodeGetDependencies_v2(u64 node, u64 *n, void *edges, size_t *count) {
    if (n) { n[0] = nodes[0]; n[1] = nodes[1]; }
    GIVE(count, 2);
    SAY("%llx", node);
}
static void (*object_destructor)(u64);
static u64 object_data;
void fake_destroy_object(void) { object_destructor(object_data); }
result cuUserObjectCreate(u64 *o, u64 data, void (*destroy)(u64), unsigned count, unsigned f) {
    GIVE(o, 0x800000001ull); object_destructor = destroy; object_data = data; SAY("%u, %u", count, f);
}
result cuUserObjectRelease(u64 o, unsigned count) { fake_destroy_object(); SAY("%llx, %u", o, count); }
result cuGraphRetainUserObject(u64 g, u64 o, unsigned count, unsigned f) { SAY("%llx, %llx, %u, %u", g, o, count, f); }
result cuGraphInstantiateWithFlags(u64 *e, u64 g, u64 f) { GIVE(e, 0x900000003ull); SAY("%llx, %llx", g, f); }
result cuGraphExecUpdate_v2(u64 e, u64 g, int *r) { GIVE(r, 2); SAY("%llx, %llx", e, g); }
result cuGraphLaunch(u64 e, u64 s) { SAY("%llx, %llx", e, s); }
result cuGraphExecDestroy(u64 e) { SAY("%llx", e); }
result cuGraphDestroy(u64 g) { SAY("%llx", g); }
result cuDeviceGetGraphMemAttribute(int d, int a, u64 *v) { GIVE(v, 0x500000000ull + a); SAY("%d, %d", d, a); }
result cuDeviceSetGraphMemAttribute(int d, int a, u64 *v) { SAY("%d, %d, %llx", d, a, *v); }
result cuDeviceGraphMemTrim(int d) { SAY("%d", d); }

// --- modules, peers -------------------------------------------------------------------------------------------------

result cuModuleLoadData(u64 *m, const void *image) { GIVE(m, 0x3001); SAY("%s", (const char *)image); }
result cuModuleUnload(u64 m) { SAY("%llx", m); }
result cuModuleGetFunction(u64 *f, u64 m, const char *name) { GIVE(f, 0x3002); SAY("%llx, %s", m, name); }
// Reads the parameters as those of the test's kernel: long, int, float, double, short, byte.
result cuLaunchKernel(u64 f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, u64 stream, void **p, void **extra) {
    SAY_IN_CONTEXT("%llx, %u %u %u, %u %u %u, %u, %llx, %llx %x %.2f %.2f %x %x, %p", f, gx, gy, gz, bx, by, bz, shared, stream,
        *(u64 *)p[0], *(unsigned *)p[1], *(float *)p[2], *(double *)p[3], *(unsigned short *)p[4], *(unsigned char *)p[5], (void *)extra);
}
result cuDeviceCanAccessPeer(int *can, int d, int p) { GIVE(can, d != p); SAY("%d, %d", d, p); }
result cuCtxEnablePeerAccess(u64 c, unsigned f) { SAY("%llx, %x", c, f); }
result cuCtxDisablePeerAccess(u64 c) { SAY("%llx", c); }
