/* As much of ONNX Runtime's C interface as an allocator meets: the table of functions, an environment that one allocator a
   device is registered with, and calls that a session makes. What ONNX Runtime would not forgive is counted. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NEWEST
#define NEWEST 29
#endif

struct Status { int code; char message[200]; };
struct Info { int device; };
struct Pairs { int count; char keys[16][32]; char values[16][32]; };
struct Stream { void* table; void* handle; };
struct Allocator {
    uint32_t version;
    void* (*alloc)(struct Allocator*, size_t);
    void (*free)(struct Allocator*, void*);
    const struct Info* (*info)(const struct Allocator*);
    void* (*reserve)(struct Allocator*, size_t);
    struct Status* (*stats)(const struct Allocator*, struct Pairs**);
    void* (*alloc_on_stream)(struct Allocator*, size_t, struct Stream*);
    struct Status* (*shrink)(struct Allocator*);
};

static struct { int references; } environment;
static struct Allocator* registered[16];
static struct Allocator* last; /* sessions keep it after it was unregistered */
static int live_statuses;

static struct Status* create_status(int code, const char* message) {
    struct Status* status = malloc(sizeof *status);
    status->code = code;
    snprintf(status->message, sizeof status->message, "%s", message);
    live_statuses++;
    return status;
}
static const char* get_error_message(const struct Status* status) {
#ifdef OTHER_TABLE
    return "something else";
#else
    return status->message;
#endif
}
static void release_status(struct Status* status) { if (status) { live_statuses--; free(status); } }
static struct Status* create_environment(int level, const char* id, void** out) {
    environment.references++;
    *out = &environment;
    return NULL;
}
static void release_environment(void* env) { environment.references--; }
static struct Status* create_memory_info(const char* name, int type, int device, int memory_type, struct Info** out) {
    if (strcmp(name, "Cuda") || type != 0 || memory_type != 0) return create_status(2, "no such memory");
    *out = malloc(sizeof **out);
    (*out)->device = device;
    return NULL;
}
static void release_memory_info(struct Info* info) { free(info); }
static struct Status* register_allocator(void* env, struct Allocator* allocator) {
    int device = allocator->info(allocator)->device;
    if (env != &environment) return create_status(2, "no environment");
    registered[device] = last = allocator; /* a second one replaces the first */
    return NULL;
}
static struct Status* unregister_allocator(void* env, const struct Info* info) {
    if (!registered[info->device]) return create_status(2, "No allocator for this device has been registered for sharing.");
    registered[info->device] = NULL;
    return NULL;
}
static void create_pairs(struct Pairs** out) { *out = calloc(1, sizeof **out); }
static void add_pair(struct Pairs* pairs, const char* key, const char* value) {
    snprintf(pairs->keys[pairs->count], 32, "%s", key);
    snprintf(pairs->values[pairs->count++], 32, "%s", value);
}
static void* get_handle(struct Stream* stream) { return stream->handle; }
static void not_known(void) { fprintf(stderr, "a function that the fake does not have\n"); abort(); }

static void* table[400];

static const void* get_api(uint32_t version) {
    if (version > NEWEST) return NULL;
    for (int i = 0; i < 400; i++) table[i] = not_known;
    table[0] = create_status;
    table[2] = get_error_message;
    table[3] = create_environment;
    table[68] = create_memory_info;
    table[92] = release_environment;
    table[93] = release_status;
    table[94] = release_memory_info;
    table[176] = register_allocator;
    table[177] = unregister_allocator;
    table[295] = create_pairs;
    table[296] = add_pair;
    table[384] = get_handle;
    return table;
}
static const char* get_version(void) { static char text[16]; snprintf(text, 16, "1.%d.0", NEWEST); return text; }
static const struct { const void* (*api)(uint32_t); const char* (*version)(void); } base = {get_api, get_version};
const void* OrtGetApiBase(void) { return &base; }

/* What sessions do. */
void* fake_alloc(size_t size) { return last->alloc(last, size); }
void* fake_reserve(size_t size) { return last->reserve(last, size); }
void* fake_alloc_on_stream(size_t size, void* handle) {
    struct Stream stream = {NULL, handle};
    return last->alloc_on_stream(last, size, &stream);
}
void fake_free(void* block) { last->free(last, block); }
int fake_shrink(void) {
    if (last->version < 25) return -1;
    struct Status* status = last->shrink(last);
    int failed = status != NULL;
    release_status(status);
    return failed;
}
long fake_stat(const char* key) {
    struct Pairs* pairs;
    struct Status* status = last->stats(last, &pairs);
    if (status) { release_status(status); return -2; }
    long found = -3;
    for (int i = 0; i < pairs->count; i++) if (!strcmp(pairs->keys[i], key)) found = atol(pairs->values[i]);
    free(pairs);
    return found;
}
int fake_references(void) { return environment.references; }
int fake_statuses(void) { return live_statuses; }

/* Threads that Java has never seen, each on a stream of its own. */
struct Work { void* handle; int rounds; int failed; };
static void* serve(void* argument) {
    struct Work* work = argument;
    for (int i = 0; i < work->rounds; i++) {
        void* block = fake_alloc_on_stream(1000 + 512 * (i % 40), work->handle);
        if (!block) { work->failed++; continue; }
        fake_free(block);
    }
    return NULL;
}
int fake_threads(int count, void** handles, int rounds) {
    pthread_t threads[16];
    struct Work works[16];
    int failed = 0;
    for (int i = 0; i < count; i++) {
        works[i] = (struct Work) {handles[i], rounds, 0};
        pthread_create(&threads[i], NULL, serve, &works[i]);
    }
    for (int i = 0; i < count; i++) { pthread_join(threads[i], NULL); failed += works[i].failed; }
    return failed;
}
