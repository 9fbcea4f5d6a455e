// Those functions of cuBLAS 12 that a JCublas program calls, passed on to a newer cuBLAS: for machines that have only that.
// Their signatures have not changed. Made with cublas12.map, since JCublas asks for symbols of that version:
//   gcc -O2 -shared -fPIC cublas12.c -Wl,--version-script=cublas12.map -Wl,-soname,libcublas.so.12 -o libcublas.so.12 -ldl
// The newer library is linked in, so that it is found; its functions are looked up there by their version.
#include <dlfcn.h>
#include <stddef.h>

static void *newer(const char *name) {
    static void *library;
    if (!library) library = dlopen("libcublas.so.13", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

// CUBLAS_STATUS_NOT_INITIALIZED
#define MISSING 1

int cublasCreate_v2(void **handle) {
    int (*call)(void **) = newer("cublasCreate_v2");
    return call ? call(handle) : MISSING;
}

int cublasDestroy_v2(void *handle) {
    int (*call)(void *) = newer("cublasDestroy_v2");
    return call ? call(handle) : MISSING;
}

int cublasSetStream_v2(void *handle, void *stream) {
    int (*call)(void *, void *) = newer("cublasSetStream_v2");
    return call ? call(handle, stream) : MISSING;
}

int cublasGetPointerMode_v2(void *handle, int *mode) {
    int (*call)(void *, int *) = newer("cublasGetPointerMode_v2");
    return call ? call(handle, mode) : MISSING;
}

int cublasSetPointerMode_v2(void *handle, int mode) {
    int (*call)(void *, int) = newer("cublasSetPointerMode_v2");
    return call ? call(handle, mode) : MISSING;
}

int cublasSgemm_v2(
    void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
    int ldb, const float *beta, float *c, int ldc) {
    int (*call)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *,
                float *, int) = newer("cublasSgemm_v2");
    return call ? call(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) : MISSING;
}
