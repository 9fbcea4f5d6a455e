// A libnccl.so.2 whose ranks are within one process and whose memory is the host's: collectives move the bytes that their
// pointers point at, at the end of the group or, without one, when the last rank has called. It writes down each call with
// its arguments as it got them, and fails where the test says.
//
// Compile-time variants: VERSION, WITHOUT_ALL_TO_ALL, NULL_REGISTRATION, NULL_WINDOW.
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 22803
#endif

typedef int result;
typedef struct { char bytes[128]; } unique_id;
typedef struct clique clique;
typedef struct comm { clique *of; int rank; int device; long calls; int error; } comm;
struct clique { int size; comm *members[8]; };

enum { SUM, PROD, MAX, MIN, AVG };
enum { FLOAT8 = 10 };
enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND, RECEIVE };

typedef struct {
    int kind, type, op, peer, done;
    comm *by;
    const char *send;
    char *receive;
    size_t count;
} task;

// --- what the test reads and sets -----------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 20];
static size_t length;
static char failing[64];
static int failure, failing_after;
static long allocations;
static task tasks[256];
static int task_count;
static __thread int depth;
static char last_error[128];

const char *fake_text(void) { return text; }
void fake_clear(void) { length = 0; text[0] = 0; }
void fake_fail(const char *name, int code, int after) {
    snprintf(failing, sizeof failing, "%s", name);
    failure = code;
    failing_after = after;
}
void fake_last_error(const char *what) { snprintf(last_error, sizeof last_error, "%s", what); }
void fake_async_error(comm *c, int error) { c->error = error; }
long fake_allocations(void) { return allocations; }

static result say(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&mutex);
    length += snprintf(text + length, sizeof text - length, "%s(", name);
    length += vsnprintf(text + length, sizeof text - length, format, arguments);
    length += snprintf(text + length, sizeof text - length, ")\n");
    result code = failing[0] && strcmp(failing, name) == 0 && failing_after-- <= 0 ? failure : 0;
    pthread_mutex_unlock(&mutex);
    va_end(arguments);
    return code;
}

#define SAY(...) do { result code_ = say(__func__, __VA_ARGS__); if (code_) return code_; } while (0)
#define RANK(c) ((c)->rank)

// --- data -----------------------------------------------------------------------------------------------------------

static size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return sizes[type];
}

static double get(const char *p, int type, size_t i) {
    switch (type) {
        case 0: return ((const int8_t *) p)[i];
        case 2: return ((const int32_t *) p)[i];
        case 4: return ((const int64_t *) p)[i];
        case 7: return ((const float *) p)[i];
        default: return ((const double *) p)[i];
    }
}

static void put(char *p, int type, size_t i, double v) {
    switch (type) {
        case 0: ((int8_t *) p)[i] = (int8_t) v; break;
        case 2: ((int32_t *) p)[i] = (int32_t) v; break;
        case 4: ((int64_t *) p)[i] = (int64_t) v; break;
        case 7: ((float *) p)[i] = (float) v; break;
        default: ((double *) p)[i] = v;
    }
}

static double combine(int op, double a, double b) {
    switch (op) {
        case PROD: return a * b;
        case MAX: return a > b ? a : b;
        case MIN: return a < b ? a : b;
        default: return a + b;
    }
}

static void reduce(task **all, int n, char *to, size_t from, task *t) {
    char *sum = malloc(t->count * 8);
    for (size_t i = 0; i < t->count; i++) {
        double v = get(all[0]->send, t->type, from + i);
        for (int r = 1; r < n; r++) v = combine(t->op, v, get(all[r]->send, t->type, from + i));
        put(sum, t->type, i, t->op == AVG ? v / n : v);
    }
    memcpy(to, sum, t->count * size_of(t->type));
    free(sum);
}

// Moves the data of one collective of all ranks, in the order of ranks.
static void move(task **all, int n) {
    size_t bytes = all[0]->count * size_of(all[0]->type);
    char *given[8];
    for (int r = 0; r < n; r++) { // What a rank gives may lie where another one of this process gets something.
        size_t size = bytes * (all[r]->kind == REDUCE_SCATTER || all[r]->kind == ALL_TO_ALL ? n : 1);
        given[r] = malloc(size + 1);
        if (all[r]->send && (all[r]->kind != BROADCAST || r == all[r]->peer)) memcpy(given[r], all[r]->send, size);
        all[r]->send = given[r];
    }
    for (int r = 0; r < n; r++) {
        task *t = all[r];
        switch (t->kind) {
            case ALL_REDUCE: reduce(all, n, t->receive, 0, t); break;
            case REDUCE: if (r == t->peer) reduce(all, n, t->receive, 0, t); break;
            case REDUCE_SCATTER: reduce(all, n, t->receive, r * t->count, t); break;
            case BROADCAST: memcpy(t->receive, given[t->peer], bytes); break;
            case ALL_GATHER: for (int s = 0; s < n; s++) memcpy(t->receive + s * bytes, given[s], bytes); break;
            case ALL_TO_ALL: for (int s = 0; s < n; s++) memcpy(t->receive + s * bytes, given[s] + r * bytes, bytes);
        }
    }
    for (int r = 0; r < n; r++) { free(given[r]); all[r]->done = 1; }
}

static int try_pair(task *t) {
    for (int i = 0; i < task_count; i++) {
        task *u = &tasks[i];
        if (!u->done && u->kind == RECEIVE && u->by->of == t->by->of && u->by->rank == t->peer && u->peer == t->by->rank) {
            memcpy(u->receive, t->send, t->count * size_of(t->type));
            return t->done = u->done = 1;
        }
    }
    return 0;
}

static int try_collective(task *t) {
    task *all[8] = {0};
    for (int i = 0; i < task_count; i++) {
        task *u = &tasks[i];
        if (!u->done && u->by->of == t->by->of && u->kind == t->kind && !all[u->by->rank]) all[u->by->rank] = u;
    }
    for (int r = 0; r < t->by->of->size; r++) if (!all[r]) return 0;
    move(all, t->by->of->size);
    return 1;
}

// Moves what all ranks have called.
static void run(void) {
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < task_count && !again; i++) {
            task *t = &tasks[i];
            if (!t->done && t->kind != RECEIVE) again = t->kind == SEND ? try_pair(t) : try_collective(t);
        }
    }
    int left = 0;
    for (int i = 0; i < task_count; i++) if (!tasks[i].done) tasks[left++] = tasks[i];
    task_count = left;
}

static result add(task t) {
    pthread_mutex_lock(&mutex);
    tasks[task_count++] = t;
    if (depth == 0) run();
    pthread_mutex_unlock(&mutex);
    return 0;
}

// --- libnccl --------------------------------------------------------------------------------------------------------

static comm *new_comm(clique *of, int rank, int device) {
    comm *c = calloc(1, sizeof *c);
    c->of = of;
    c->rank = rank;
    c->device = device;
    return of->members[rank] = c;
}

result ncclGetVersion(int *version) { *version = VERSION; return 0; }
const char *ncclGetLastError(comm *c) { return last_error; }

result ncclGetUniqueId(unique_id *id) {
    for (int i = 0; i < 128; i++) id->bytes[i] = (char) (i + 1);
    SAY("");
    return 0;
}

result ncclCommInitAll(comm **out, int count, const int *devices) {
    SAY("%d, [%d..%d]", count, devices[0], devices[count - 1]);
    clique *of = calloc(1, sizeof *of);
    of->size = count;
    for (int i = 0; i < count; i++) out[i] = new_comm(of, i, devices[i]);
    return 0;
}

result ncclCommInitRank(comm **out, int ranks, unique_id id, int rank) {
    int sum = 0;
    for (int i = 0; i < 128; i++) sum += (unsigned char) id.bytes[i];
    SAY("%d, id of sum %d, %d", ranks, sum, rank);
    static clique *pending;
    if (!pending) { pending = calloc(1, sizeof *pending); pending->size = ranks; }
    *out = new_comm(pending, rank, rank);
    int all = 1;
    for (int i = 0; i < ranks; i++) all &= pending->members[i] != NULL;
    if (all) pending = NULL;
    return 0;
}

result ncclCommSplit(comm *c, int color, int key, comm **out, void *config) {
    SAY("%d, %d, %d, %p", RANK(c), color, key, config);
    clique *of = calloc(1, sizeof *of);
    of->size = 1;
    *out = color < 0 ? NULL : new_comm(of, 0, c->device);
    return 0;
}

result ncclCommFinalize(comm *c) { SAY("%d", RANK(c)); return 0; }
result ncclCommDestroy(comm *c) { SAY("%d", RANK(c)); return 0; }
result ncclCommAbort(comm *c) { SAY("%d", RANK(c)); return 0; }
result ncclCommCount(comm *c, int *out) { *out = c->of->size; return 0; }
result ncclCommUserRank(comm *c, int *out) { *out = c->rank; return 0; }
result ncclCommGetAsyncError(comm *c, int *out) { *out = c->error; return 0; }

result ncclMemAlloc(void **out, size_t size) {
    SAY("%zu", size);
    allocations++;
    return posix_memalign(out, 2 << 20, size) ? 1 : 0;
}

result ncclMemFree(void *p) { SAY(""); allocations--; free(p); return 0; }

result ncclCommRegister(comm *c, void *p, size_t size, void **handle) {
    SAY("%d, %zu", RANK(c), size);
#ifdef NULL_REGISTRATION
    *handle = NULL;
#else
    *handle = p;
#endif
    return 0;
}

result ncclCommDeregister(comm *c, void *handle) { SAY("%d", RANK(c)); return 0; }

#if VERSION >= 22703
result ncclCommWindowRegister(comm *c, void *p, size_t size, void **window, int flags) {
    SAY("%d, %zu, %d", RANK(c), size, flags);
#ifdef NULL_WINDOW
    *window = NULL;
#else
    *window = p;
#endif
    return 0;
}

result ncclCommWindowDeregister(comm *c, void *window) { SAY("%d", RANK(c)); return 0; }
#endif

result ncclGroupStart(void) { SAY(""); depth++; return 0; }

result ncclGroupEnd(void) {
    depth--;
    pthread_mutex_lock(&mutex);
    if (depth == 0) run();
    pthread_mutex_unlock(&mutex);
    SAY("");
    return 0;
}

result ncclAllReduce(const void *s, void *r, size_t n, int type, int op, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %zx", RANK(c), n, type, op, stream);
    if (c->of->size == 1 && op == AVG && type >= FLOAT8) return 4; // as NCCL 2.28 does
    return add((task) {.kind = ALL_REDUCE, .type = type, .op = op, .by = c, .send = s, .receive = r, .count = n});
}

result ncclBroadcast(const void *s, void *r, size_t n, int type, int root, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %zx", RANK(c), n, type, root, stream);
    return add((task) {.kind = BROADCAST, .type = type, .peer = root, .by = c, .send = s, .receive = r, .count = n});
}

result ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %d, %zx", RANK(c), n, type, op, root, stream);
    return add((task) {
        .kind = REDUCE, .type = type, .op = op, .peer = root, .by = c, .send = s, .receive = r, .count = n});
}

result ncclAllGather(const void *s, void *r, size_t n, int type, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %zx", RANK(c), n, type, stream);
    return add((task) {.kind = ALL_GATHER, .type = type, .by = c, .send = s, .receive = r, .count = n});
}

result ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %zx", RANK(c), n, type, op, stream);
    return add((task) {.kind = REDUCE_SCATTER, .type = type, .op = op, .by = c, .send = s, .receive = r, .count = n});
}

#ifndef WITHOUT_ALL_TO_ALL
result ncclAlltoAll(const void *s, void *r, size_t n, int type, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %zx", RANK(c), n, type, stream);
    return add((task) {.kind = ALL_TO_ALL, .type = type, .by = c, .send = s, .receive = r, .count = n});
}
#endif

result ncclSend(const void *s, size_t n, int type, int peer, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %zx", RANK(c), n, type, peer, stream);
    return add((task) {.kind = SEND, .type = type, .peer = peer, .by = c, .send = s, .count = n});
}

result ncclRecv(void *r, size_t n, int type, int peer, comm *c, uintptr_t stream) {
    SAY("%d, %zu, %d, %d, %zx", RANK(c), n, type, peer, stream);
    return add((task) {.kind = RECEIVE, .type = type, .peer = peer, .by = c, .receive = r, .count = n});
}
