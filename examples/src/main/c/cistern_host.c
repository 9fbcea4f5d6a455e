/* Cistern as a shared library for a process that is not Java's: the first allocation starts a JVM in it. What it exports is
   what PyTorch's pluggable allocator loads:

   cc -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux -o libcistern.so cistern_host.c -ldl -lpthread
   CISTERN_JVM=$JAVA_HOME/lib/server/libjvm.so      the JVM
   CISTERN_JVM_CLASSPATH=a.jar:b.jar                Cistern's JARs, one by one
   CISTERN_JVM_OPTIONS="-Dcistern.allocator=async"  more options, with blanks between them

   The JVM lives as long as the process. It keeps its handlers for signals such as SIGSEGV, so a host that has some of its own
   sets them first. */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define MOST_OPTIONS 32

typedef void* (*malloc_function)(ssize_t size, int device, void* stream);
typedef void (*free_function)(void* block, ssize_t size, int device, void* stream);
typedef jint (*create_vm)(JavaVM**, void**, void*);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static malloc_function allocate;
static free_function release;
static JavaVM* vm;
static jclass host;

static void fail(const char* what) {
    fprintf(stderr, "cistern: %s\n", what);
}

static jlong address_of(JNIEnv* env, const char* function) {
    jmethodID method = (*env)->GetStaticMethodID(env, host, function, "()J");
    jlong address = method == NULL ? 0 : (*env)->CallStaticLongMethod(env, host, method);
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionDescribe(env);
        (*env)->ExceptionClear(env);
        return 0;
    }
    return address;
}

static void start(void) {
    const char* library = getenv("CISTERN_JVM");
    void* jvm = library == NULL ? NULL : dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    create_vm create = jvm == NULL ? NULL : (create_vm) dlsym(jvm, "JNI_CreateJavaVM");
    if (create == NULL) {
        fail("CISTERN_JVM must name a libjvm.so");
        return;
    }
    JavaVMOption options[MOST_OPTIONS];
    int count = 0;
    const char* path = getenv("CISTERN_JVM_CLASSPATH");
    char* class_path = malloc(strlen(path == NULL ? "" : path) + 32);
    sprintf(class_path, "-Djava.class.path=%s", path == NULL ? "" : path);
    options[count++].optionString = class_path;
    options[count++].optionString = "--enable-native-access=ALL-UNNAMED";
    char* more = strdup(getenv("CISTERN_JVM_OPTIONS") == NULL ? "" : getenv("CISTERN_JVM_OPTIONS"));
    for (char* word = strtok(more, " "); word != NULL && count < MOST_OPTIONS; word = strtok(NULL, " ")) {
        options[count++].optionString = word;
    }
    JavaVMInitArgs arguments = {JNI_VERSION_21, count, options, JNI_FALSE};
    JNIEnv* env;
    if (create(&vm, (void**) &env, &arguments) != JNI_OK) {
        fail("the JVM can't be started");
        return;
    }
    jclass found = (*env)->FindClass(env, "io/cistern/loader/functions/NativeHost");
    if (found == NULL) {
        (*env)->ExceptionDescribe(env);
        (*env)->ExceptionClear(env);
        fail("Cistern is not on CISTERN_JVM_CLASSPATH");
        return;
    }
    host = (*env)->NewGlobalRef(env, found);
    free_function f = (free_function) address_of(env, "free");
    malloc_function m = (malloc_function) address_of(env, "malloc");
    if (m != NULL && f != NULL) {
        release = f;
        allocate = m;
    }
}

void* cistern_malloc(ssize_t size, int device, void* stream) {
    pthread_once(&once, start);
    return allocate == NULL ? NULL : allocate(size, device, stream);
}

void cistern_free(void* block, ssize_t size, int device, void* stream) {
    if (release != NULL) {
        release(block, size, device, stream);
    }
}

/* What Cistern counted on a device: allocations, frees, bytes alive. Returns 0 if it can't tell. */
int cistern_counts(int device, long counts[3]) {
    JNIEnv* env;
    if (vm == NULL || (*vm)->AttachCurrentThread(vm, (void**) &env, NULL) != JNI_OK) {
        return 0;
    }
    jmethodID method = (*env)->GetStaticMethodID(env, host, "counts", "(I)[J");
    jlongArray array = method == NULL ? NULL : (*env)->CallStaticObjectMethod(env, host, method, device);
    if (array == NULL) {
        (*env)->ExceptionClear(env);
        return 0;
    }
    (*env)->GetLongArrayRegion(env, array, 0, 3, (jlong*) counts);
    return 1;
}
