// Ways to bring pageable memory to a device through two pinned pieces in turns, beside the driver's own copy of it.
// gcc -O3 -I$CUDA/include staging-ways.c -o staging-ways -lcuda && taskset -c 3 ./staging-ways > staging-ways.txt
#define _GNU_SOURCE
#include <cuda.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define CK(x) do { CUresult r = (x); if (r) { printf("%s: %d\n", #x, r); exit(1); } } while (0)
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e6 + t.tv_nsec / 1e3; }
// Several pages side by side, so that as many of the processor's prefetchers run.
static inline void pages(char *d, const char *s, size_t n, size_t step, int streams) {
    size_t block = (size_t) streams * 4096, at = 0;
    for (; at + block <= n; at += block)
        for (size_t o = 0; o < 4096; o += step)
            for (int p = 0; p < streams; p++) memcpy(d + at + p * 4096 + o, s + at + p * 4096 + o, step);
    memcpy(d + at, s + at, n - at);
}
static volatile size_t s256 = 256, s512 = 512, s1024 = 1024;
static void p4_256(char *d, const char *s, size_t n) { pages(d, s, n, s256, 4); }
static void p4_512(char *d, const char *s, size_t n) { pages(d, s, n, s512, 4); }
static void p4_1024(char *d, const char *s, size_t n) { pages(d, s, n, s1024, 4); }
static void p8_512(char *d, const char *s, size_t n) { pages(d, s, n, s512, 8); }
static void p2_512(char *d, const char *s, size_t n) { pages(d, s, n, s512, 2); }
__attribute__((target("avx512f"))) static void i4(char *d, const char *s, size_t n) {
    for (size_t at = 0; at < n; at += 16384)
        for (size_t o = 0; o < 4096; o += 64) {
            _mm512_storeu_si512(d + at + o, _mm512_loadu_si512(s + at + o)); _mm512_storeu_si512(d + at + o + 4096, _mm512_loadu_si512(s + at + o + 4096));
            _mm512_storeu_si512(d + at + o + 8192, _mm512_loadu_si512(s + at + o + 8192)); _mm512_storeu_si512(d + at + o + 12288, _mm512_loadu_si512(s + at + o + 12288));
        }
}
static volatile long sink;
static inline void touched(char *d, const char *s, size_t n, size_t ahead) {
    for (size_t at = 0; at < n; at += 4096) {
        long x = 0; const char *q = s + at + ahead; for (int i = 0; i < 4096; i += 64) x ^= *(volatile long *)(q + i);
        memcpy(d + at, s + at, 4096); sink = x;
    }
}
static void t1(char *d, const char *s, size_t n) { touched(d, s, n, 8192); }
static inline void fetched(char *d, const char *s, size_t n, size_t ahead) {
    for (size_t at = 0; at < n; at += 4096) {
        const char *q = s + at + ahead; for (int i = 0; i < 4096; i += 64) __builtin_prefetch(q + i, 0, 2);
        memcpy(d + at, s + at, 4096);
    }
}
static void f1(char *d, const char *s, size_t n) { fetched(d, s, n, 8192); }
static void f2(char *d, const char *s, size_t n) { fetched(d, s, n, 16384); }
static void fw(char *d, const char *s, size_t n) {
    for (size_t at = 0; at < n; at += 4096) {
        const char *q = s + at + 8192; for (int i = 0; i < 4096; i += 64) { __builtin_prefetch(q + i, 0, 2); __builtin_prefetch(d + at + 8192 + i, 1, 2); }
        memcpy(d + at, s + at, 4096);
    }
}
static void mc(char *d, const char *s, size_t n) { memcpy(d, s, n); }
typedef void (*mover)(char *, const char *, size_t);
static CUstream st; static CUdeviceptr dev; static char *src;
static double staged(size_t size, char *pin, size_t piece, int turns, mover m, int each, int n) {
    static CUevent ev[16]; static int made; if (!made) { for (int i = 0; i < 16; i++) CK(cuEventCreate(&ev[i], CU_EVENT_DISABLE_TIMING)); made = 1; }
    int used[16] = {0}; CK(cuStreamSynchronize(st)); double t = now();
    int turn = 0;
    for (int k = 0; k < n; k++) {
        for (size_t at = 0; at < size; at += piece) {
            size_t len = size - at < piece ? size - at : piece;
            if (used[turn]) CK(cuEventSynchronize(ev[turn]));
            m(pin + turn * piece, src + at, len);
            CK(cuMemcpyHtoDAsync(dev + at, pin + turn * piece, len, st));
            CK(cuEventRecord(ev[turn], st)); used[turn] = 1;
            turn = (turn + 1) % turns;
        }
        if (each) CK(cuStreamSynchronize(st));
    }
    CK(cuStreamSynchronize(st)); return (now() - t) / n;
}
static double driver(size_t size, int each, int n) {
    CK(cuStreamSynchronize(st)); double t = now();
    for (int k = 0; k < n; k++) { CK(cuMemcpyHtoDAsync(dev, src, size, st)); if (each) CK(cuStreamSynchronize(st)); }
    CK(cuStreamSynchronize(st)); return (now() - t) / n;
}
static int cmp(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
int main(void) {
    CK(cuInit(0)); CUdevice d; CK(cuDeviceGet(&d, 0)); CUcontext c; CK(cuDevicePrimaryCtxRetain(&c, d)); CK(cuCtxSetCurrent(c));
    CK(cuStreamCreate(&st, CU_STREAM_NON_BLOCKING)); CK(cuMemAlloc(&dev, 64 << 20));
    src = malloc(64 << 20); memset(src, 1, 64 << 20);
    char *pinned, *wc; CK(cuMemHostAlloc((void **)&pinned, 32 << 20, 0)); CK(cuMemHostAlloc((void **)&wc, 32 << 20, CU_MEMHOSTALLOC_WRITECOMBINED));
    memset(pinned, 0, 32 << 20); memset(wc, 0, 32 << 20);
    size_t sizes[] = {1 << 20, 2 << 20, 4 << 20}; size_t pieces[] = {256 << 10, 512 << 10};
    struct { const char *name; mover m; int wc; } ways[] = {{"memcpy", mc, 0}, {"4 pages x 256", p4_256, 0}, {"4 pages x 512", p4_512, 0}, {"4 pages x 1024", p4_1024, 0}, {"8 pages x 512", p8_512, 0}, {"2 pages x 512", p2_512, 0}, {"4 pages x 64 avx", i4, 0}, {"touch 8K ahead", t1, 0}, {"fetch 8K ahead", f1, 0}, {"fetch 16K ahead", f2, 0}, {"fetch both", fw, 0}, {"wc 4 pages", p4_512, 1}, {"wc fetch", f1, 1}};
    for (int v = 0; v < 13; v++) for (int big = 0; big < 2; big++) { double best = 1e9; for (int k = 0; k < 20; k++) { double t = now(); size_t size = big ? 4 << 20 : 1 << 20; for (int i = 0; i < 8; i++) for (size_t at = 0; at < size; at += 256 << 10) ways[v].m((ways[v].wc ? wc : pinned) + (at & (256 << 10)), src + at, 256 << 10); double e = (now() - t) / 8 / (size >> 20); if (e < best) best = e; }
        printf("bytes alone, %d MiB %-20s %.1f us a MiB\n", big ? 4 : 1, ways[v].name, best); }
    for (int s = 0; s < 3; s++) for (int each = 0; each < 2; each++) {
        size_t size = sizes[s]; int n = (int)((32 << 20) / size); enum { R = 15 };
        static double r[80][R]; static char name[80][64]; int w = 0;
        for (int k = 0; k < R; k++) { w = 0;
            r[w][k] = driver(size, each, n); strcpy(name[w++], "C");
            for (int p = 0; p < 2; p++) for (int v = 0; v < 13; v++) {
                r[w][k] = staged(size, ways[v].wc ? wc : pinned, pieces[p], 2, ways[v].m, each, n);
                sprintf(name[w++], "%s, 2 of %zu KiB", ways[v].name, pieces[p] >> 10);
            } }
        for (int i = 0; i < w; i++) qsort(r[i], R, sizeof(double), cmp);
        printf("== %zu MiB, %s\n", size >> 20, each ? "each waited for" : "enqueued");
        for (int i = 0; i < w; i++) printf("%-28s %8.1f us (%.2f)  lowest %.1f\n", name[i], r[i][R / 2], r[0][R / 2] / r[i][R / 2], r[i][0]);
    }
    return 0;
}
