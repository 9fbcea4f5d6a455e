// Functions of cuBLAS, cuBLASLt and cuDNN that compute nothing and notice what the libraries forbid: a handle that two
// threads are in at once or that is used after its end, a product without the workspace that was set for its stream,
// and a stream other than the caller expects, who says so by alpha.
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIVE = 0x5ca1ab1e, GONE = 0x0ddba11 };
enum { DOUBLE = 1, ALLOC_FAILED = 3, SPIN = 200 };

atomic_long fake_violations, fake_created, fake_destroyed, fake_products, fake_heuristics, fake_descriptors;
atomic_long fake_failing_creates, fake_failing_status, fake_no_algorithm, fake_expected_bytes;
char fake_violation[256];
char fake_last[1024];

typedef struct {
    atomic_int state, in_use;
    int64_t stream, workspace, bytes;
} Object;

static void violation(const char* what) {
    snprintf(fake_violation, sizeof fake_violation, "%s", what);
    atomic_fetch_add(&fake_violations, 1);
}

static void enter(Object* o, const char* what) {
    if (atomic_load(&o->state) != ALIVE) violation("used after its end");
    if (atomic_exchange(&o->in_use, 1)) violation(what);
}

static void leave(Object* o) { atomic_store(&o->in_use, 0); }

static int create(Object** out) {
    if (atomic_load(&fake_failing_creates) > 0) {
        atomic_fetch_sub(&fake_failing_creates, 1);
        return ALLOC_FAILED;
    }
    *out = calloc(1, sizeof(Object)); // never freed: what uses it after its end is to be found
    atomic_store(&(*out)->state, ALIVE);
    atomic_fetch_add(&fake_created, 1);
    return 0;
}

static int destroy(Object* o) {
    enter(o, "destroyed while a thread is inside");
    atomic_store(&o->state, GONE);
    leave(o);
    atomic_fetch_add(&fake_destroyed, 1);
    return 0;
}

static int set_stream(Object* o, int64_t stream) {
    enter(o, "a stream set while a thread is inside");
    o->stream = stream;
    o->workspace = 0;
    o->bytes = 0;
    leave(o);
    return 0;
}

static double scalar(const void* at, int type) { return type == DOUBLE ? *(double*) at : *(float*) at; }

static int product(Object* o, int64_t stream, int64_t workspace, int64_t bytes, const void* alpha, int type) {
    enter(o, "two threads in one handle");
    for (volatile int i = 0; i < SPIN; i++) {}
    long expected = atomic_load(&fake_expected_bytes);
    if (expected && (workspace == 0 || bytes != expected)) violation("no workspace for the stream");
    if (expected && scalar(alpha, type) != (double) (stream & 0xffff)) violation("another stream than expected");
    leave(o);
    atomic_fetch_add(&fake_products, 1);
    return (int) atomic_load(&fake_failing_status);
}

static const char* name(int status) {
    switch (status) {
        case 0: return "CUBLAS_STATUS_SUCCESS";
        case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
        case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
        case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
        default: return "CUBLAS_STATUS_?";
    }
}

static int property(int which, int* out) {
    *out = which == 0 ? 13 : which;
    return 0;
}

// cuBLAS

int cublasCreate_v2(Object** out) { return create(out); }
int cublasDestroy_v2(Object* h) { return destroy(h); }
int cublasSetStream_v2(Object* h, int64_t stream) { return set_stream(h, stream); }
int cublasGetProperty(int which, int* out) { return property(which, out); }
const char* cublasGetStatusName(int status) { return name(status); }

int cublasSetWorkspace_v2(Object* h, int64_t address, size_t bytes) {
    enter(h, "a workspace set while a thread is inside");
    h->workspace = address;
    h->bytes = (int64_t) bytes;
    leave(h);
    return 0;
}

int cublasGemmEx(Object* h, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int at, int lda,
                 const void* b, int bt, int ldb, const void* beta, void* c, int ct, int ldc, int compute, int algo) {
    snprintf(fake_last, sizeof fake_last, "%d %d %d %d %d %g a=%lx %d %d b=%lx %d %d %g c=%lx %d %d %d %d", ta, tb, m, n,
             k, scalar(alpha, at), (long) a, at, lda, (long) b, bt, ldb, scalar(beta, at), (long) c, ct, ldc, compute,
             algo);
    return product(h, h->stream, h->workspace, h->bytes, alpha, at);
}

int cublasGemmStridedBatchedEx(Object* h, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int at,
                               int lda, long long sa, const void* b, int bt, int ldb, long long sb, const void* beta,
                               void* c, int ct, int ldc, long long sc, int count, int compute, int algo) {
    snprintf(fake_last, sizeof fake_last,
             "%d %d %d %d %d %g a=%lx %d %d %lld b=%lx %d %d %lld %g c=%lx %d %d %lld * %d %d %d", ta, tb, m, n, k,
             scalar(alpha, at), (long) a, at, lda, sa, (long) b, bt, ldb, sb, scalar(beta, at), (long) c, ct, ldc, sc,
             count, compute, algo);
    return product(h, h->stream, h->workspace, h->bytes, alpha, at);
}

// cuBLASLt

typedef struct {
    atomic_int state, in_use;
    int type, scale, ta, tb, epilogue, alignment[4];
    int64_t rows, columns, ld, bias, bytes;
} Descriptor;

static int describe(Descriptor** out) {
    *out = calloc(1, sizeof(Descriptor));
    atomic_store(&(*out)->state, ALIVE);
    atomic_fetch_add(&fake_descriptors, 1);
    return 0;
}

static int forget(Descriptor* d) {
    if (atomic_exchange(&d->state, GONE) != ALIVE) violation("a descriptor destroyed twice");
    atomic_fetch_sub(&fake_descriptors, 1);
    return 0;
}

static void require_alive(Descriptor* d) {
    if (atomic_load(&d->state) != ALIVE) violation("a descriptor used after its end");
}

int cublasLtCreate(Object** out) { return create(out); }
int cublasLtDestroy(Object* h) { return destroy(h); }
int cublasLtGetProperty(int which, int* out) { return property(which, out); }
const char* cublasLtGetStatusName(int status) { return name(status); }

int cublasLtMatmulDescCreate(Descriptor** out, int compute, int scale) {
    describe(out);
    (*out)->type = compute;
    (*out)->scale = scale;
    return 0;
}

int cublasLtMatmulDescDestroy(Descriptor* d) { return forget(d); }

int cublasLtMatmulDescSetAttribute(Descriptor* d, int attribute, const void* value, size_t bytes) {
    require_alive(d);
    switch (attribute) {
        case 3: d->ta = *(int*) value; return bytes == 4 ? 0 : 7;
        case 4: d->tb = *(int*) value; return bytes == 4 ? 0 : 7;
        case 7: d->epilogue = *(int*) value; return bytes == 4 ? 0 : 7;
        case 8: d->bias = *(int64_t*) value; return bytes == 8 ? 0 : 7;
        default: return 7;
    }
}

int cublasLtMatrixLayoutCreate(Descriptor** out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    describe(out);
    (*out)->type = type;
    (*out)->rows = (int64_t) rows;
    (*out)->columns = (int64_t) columns;
    (*out)->ld = ld;
    return 0;
}

int cublasLtMatrixLayoutDestroy(Descriptor* d) { return forget(d); }
int cublasLtMatmulPreferenceCreate(Descriptor** out) { return describe(out); }
int cublasLtMatmulPreferenceDestroy(Descriptor* d) { return forget(d); }

int cublasLtMatmulPreferenceSetAttribute(Descriptor* d, int attribute, const void* value, size_t bytes) {
    require_alive(d);
    if (attribute == 1) {
        d->bytes = *(int64_t*) value;
        return bytes == 8 ? 0 : 7;
    }
    if (attribute < 5 || attribute > 8) return 7;
    d->alignment[attribute - 5] = *(int*) value;
    return bytes == 4 ? 0 : 7;
}

typedef struct {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Result;

int cublasLtMatmulAlgoGetHeuristic(Object* h, Descriptor* op, Descriptor* a, Descriptor* b, Descriptor* c,
                                   Descriptor* d, Descriptor* preference, int wanted, Result* result, int* found) {
    enter(h, "two threads in one handle");
    require_alive(op), require_alive(a), require_alive(b), require_alive(c), require_alive(d);
    require_alive(preference);
    memset(result, 0, wanted * sizeof(Result));
    result->algorithm[0] = (uint64_t) preference->alignment[0] | (uint64_t) preference->alignment[1] << 16
            | (uint64_t) preference->alignment[2] << 32 | (uint64_t) preference->alignment[3] << 48;
    result->algorithm[7] = (uint64_t) preference->bytes;
    *found = atomic_load(&fake_no_algorithm) ? 0 : 1;
    atomic_fetch_add(&fake_heuristics, 1);
    leave(h);
    return *found ? 0 : 15;
}

int cublasLtMatmul(Object* h, Descriptor* op, const void* alpha, const void* a, Descriptor* la, const void* b,
                   Descriptor* lb, const void* beta, const void* c, Descriptor* lc, void* d, Descriptor* ld,
                   const uint64_t* algorithm, int64_t workspace, size_t bytes, int64_t stream) {
    require_alive(op), require_alive(la), require_alive(lb), require_alive(lc), require_alive(ld);
    if (atomic_exchange(&op->in_use, 1)) violation("two threads in one descriptor");
    int type = op->scale;
    snprintf(fake_last, sizeof fake_last,
             "%d %d %d e=%d bias=%lx %g a=%lx %d %ldx%ld/%ld b=%lx %ldx%ld/%ld %g c=%lx %ldx%ld/%ld d=%lx algo=%lx %lu",
             op->type, op->ta, op->tb, op->epilogue, (long) op->bias, scalar(alpha, type), (long) a, la->type,
             (long) la->rows, (long) la->columns, (long) la->ld, (long) b, (long) lb->rows, (long) lb->columns,
             (long) lb->ld, scalar(beta, type), (long) c, (long) lc->rows, (long) lc->columns, (long) lc->ld, (long) d,
             (long) algorithm[0], (unsigned long) algorithm[7]);
    int status = product(h, stream, workspace, (int64_t) bytes, alpha, type);
    atomic_store(&op->in_use, 0);
    return status;
}

// cuDNN

int cudnnCreate(Object** out) { return create(out); }
int cudnnDestroy(Object* h) { return destroy(h); }
int cudnnSetStream(Object* h, int64_t stream) { return set_stream(h, stream); }
size_t cudnnGetVersion(void) { return 91002; }
const char* cudnnGetErrorString(int status) { return status == ALLOC_FAILED ? "CUDNN_STATUS_ALLOC_FAILED" : "?"; }
int64_t fake_stream(Object* h) { return h->stream; }
