/* Stands in front of cuBLAS and of the creation of threads, and writes at exit what it saw, a line of JSON each: threads with their
   begin and end, handles created and destroyed, and which thread set streams and workspaces in which handle. Times are nanoseconds
   of one clock. In a forked process it begins anew.

   gcc -O2 -shared -fPIC handle_trace.c -o libhandle_trace.so -ldl -lpthread
   LD_PRELOAD=./libhandle_trace.so HANDLE_TRACE=FILE python3 PROGRAM          writes FILE.PID */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HANDLES 32 /* most handles that one thread uses, more are counted together */

struct use {
  void* handle;
  long first, last, streams, workspaces;
};

struct call {
  struct call* next;
  const char* what;
  int thread, status;
  void* handle;
  long at, nanos;
};

struct thread {
  struct thread* next;
  int id;
  char name[16];
  long begin, end;
  struct use uses[HANDLES];
};

static _Atomic(struct thread*) threads;
static _Atomic(struct call*) calls;
static atomic_int thread_count;
static __thread struct thread* self;

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static struct thread* current(void) {
  if (self == NULL) {
    self = calloc(1, sizeof *self);
    self->id = atomic_fetch_add(&thread_count, 1);
    self->begin = now();
    self->next = atomic_load(&threads);
    while (!atomic_compare_exchange_weak(&threads, &self->next, self)) {}
  }
  prctl(PR_GET_NAME, self->name);
  return self;
}

static void note(const char* what, void* handle, long at, int status) {
  struct call* call = malloc(sizeof *call);
  *call = (struct call){NULL, what, current()->id, status, handle, at, now() - at};
  call->next = atomic_load(&calls);
  while (!atomic_compare_exchange_weak(&calls, &call->next, call)) {}
}

static struct use* use(void* handle) {
  struct thread* thread = current();
  int i = 0;
  while (i < HANDLES - 1 && thread->uses[i].handle != NULL && thread->uses[i].handle != handle) i++;
  struct use* use = &thread->uses[i];
  use->last = now();
  if (use->handle == NULL) {
    use->handle = handle;
    use->first = use->last;
  }
  return use;
}

/* The library may have been loaded where the usual search does not look. */
static void* real(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  const char* libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  for (int i = 0; found == NULL && i < 3; i++) {
    void* library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) found = dlsym(library, name);
  }
  if (found == NULL) {
    fprintf(stderr, "handle_trace: no %s\n", name);
    abort();
  }
  return found;
}

#define REAL(name) \
  static _Atomic(void*) known; \
  void* found = atomic_load(&known); \
  if (found == NULL) atomic_store(&known, found = real(#name)); \
  __typeof__(&name) function = found

int cublasCreate_v2(void** handle) {
  REAL(cublasCreate_v2);
  long at = now();
  int status = function(handle);
  note("create", *handle, at, status);
  return status;
}

int cublasDestroy_v2(void* handle) {
  REAL(cublasDestroy_v2);
  long at = now();
  int status = function(handle);
  note("destroy", handle, at, status);
  return status;
}

int cublasSetStream_v2(void* handle, void* stream) {
  REAL(cublasSetStream_v2);
  use(handle)->streams++;
  return function(handle, stream);
}

int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
  REAL(cublasSetWorkspace_v2);
  use(handle)->workspaces++;
  return function(handle, workspace, bytes);
}

struct start {
  void* (*routine)(void*);
  void* argument;
};

static void ended(void* unused) {
  (void) unused;
  current()->end = now();
}

static void* begun(void* argument) {
  struct start start = *(struct start*) argument;
  free(argument);
  void* result;
  current();
  pthread_cleanup_push(ended, NULL);
  result = start.routine(start.argument);
  pthread_cleanup_pop(1);
  return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  REAL(pthread_create);
  struct start* start = malloc(sizeof *start);
  *start = (struct start){routine, argument};
  int status = function(thread, attributes, begun, start);
  if (status != 0) free(start);
  return status;
}

static void forked(void) {
  atomic_store(&threads, NULL);
  atomic_store(&calls, NULL);
  atomic_store(&thread_count, 0);
  self = NULL;
  current();
}

__attribute__((constructor)) static void begin(void) {
  pthread_atfork(NULL, NULL, forked);
  current();
}

__attribute__((destructor)) static void finish(void) {
  static atomic_flag written = ATOMIC_FLAG_INIT;
  const char* file = getenv("HANDLE_TRACE");
  char path[4096];
  if (file == NULL || atomic_flag_test_and_set(&written)) return;
  snprintf(path, sizeof path, "%s.%d", file, getpid());
  FILE* out = fopen(path, "w");
  if (out == NULL) return;
  for (struct call* c = atomic_load(&calls); c != NULL; c = c->next) {
    fprintf(out, "{\"what\": \"%s\", \"thread\": %d, \"handle\": \"%p\", \"at\": %ld, \"nanos\": %ld, \"status\": %d}\n", c->what,
            c->thread, c->handle, c->at, c->nanos, c->status);
  }
  long end = now();
  for (struct thread* t = atomic_load(&threads); t != NULL; t = t->next) {
    for (char* c = t->name; *c != 0; c++) {
      if (*c == '"' || *c == '\\' || *c < ' ') *c = '?';
    }
    fprintf(out, "{\"what\": \"thread\", \"thread\": %d, \"name\": \"%s\", \"begin\": %ld, \"end\": %ld, \"ended\": %s}\n", t->id, t->name,
            t->begin, t->end != 0 ? t->end : end, t->end != 0 ? "true" : "false");
    for (int i = 0; i < HANDLES && t->uses[i].handle != NULL; i++) {
      struct use* u = &t->uses[i];
      fprintf(out,
              "{\"what\": \"use\", \"thread\": %d, \"handle\": \"%p\", \"first\": %ld, \"last\": %ld, \"streams\": %ld, \"workspaces\": %ld}\n",
              t->id, u->handle, u->first, u->last, u->streams, u->workspaces);
    }
  }
  fclose(out);
}

/* Python's forked workers end so. */
void _exit(int status) {
  finish();
  void (*function)(int) = (void (*)(int)) dlsym(RTLD_NEXT, "_exit");
  function(status);
  __builtin_unreachable();
}
