/* Finds a JVM, starts it, and obtains the functions from TorchHost.java. */
#include "host.h"

#include <clocale>
#include <dlfcn.h>
#include <glob.h>
#include <jni.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <vector>

namespace cistern {
namespace {

const char* const LIBJVM = "/lib/server/libjvm.so";

Functions table;
std::atomic<const Functions*> ready{nullptr};
std::atomic<pid_t> forked_from{0};
std::mutex starting;
JavaVM* vm;
std::string failure; /* of the last start */

std::string variable(const char* name) {
    const char* value = getenv(name);
    return value == nullptr ? "" : value;
}

/* The folder of the distribution: this library is in its lib/native. */
std::string home() {
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&home), &self) == 0 || self.dli_fname == nullptr) {
        return "";
    }
    char* path = realpath(self.dli_fname, nullptr);
    std::string folder = path == nullptr ? "" : path;
    free(path);
    for (int up = 0; up < 3; up++) {
        size_t slash = folder.rfind('/');
        folder = slash == std::string::npos ? "" : folder.substr(0, slash);
    }
    return folder;
}

/* Adds an entry to a class path. Expands FOLDER followed by an asterisk, which only the java launcher does, to the folder's JARs. */
void add_entry(const std::string& entry, std::string& class_path) {
    glob_t found{};
    bool folder = entry.size() > 1 && entry.compare(entry.size() - 2, 2, "/*") == 0;
    if (folder && glob((entry + ".jar").c_str(), 0, nullptr, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            class_path += std::string(":") + found.gl_pathv[i];
        }
    } else if (!folder && !entry.empty()) {
        class_path += ":" + entry;
    }
    globfree(&found);
}

std::string class_path() {
    std::string path;
    add_entry(home() + "/lib/*", path);
    std::istringstream more(variable("CISTERN_CLASSPATH"));
    for (std::string entry; std::getline(more, entry, ':');) {
        add_entry(entry, path);
    }
    return path.empty() ? path : path.substr(1);
}

/* Returns the JVM's library, or null with the reason in `why`. */
void* libjvm(std::string& why) {
    void* present = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);
    if (present != nullptr) {
        return present;
    }
    std::string asked = variable("CISTERN_JAVA_HOME"), own = home() + "/runtime", usual = variable("JAVA_HOME");
    std::string chosen = !asked.empty() ? asked : access((own + LIBJVM).c_str(), R_OK) == 0 ? own : usual;
    if (chosen.empty()) {
        why = "no Java runtime: CISTERN_JAVA_HOME and JAVA_HOME are not set, and there is none in " + own
            + "; set CISTERN_JAVA_HOME to the folder of a JDK 25";
        return nullptr;
    }
    void* loaded = dlopen((chosen + LIBJVM).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (loaded == nullptr) {
        why = std::string("no Java runtime in ") + chosen + ": " + dlerror() + "; set CISTERN_JAVA_HOME to the folder of a JDK 25";
    }
    return loaded;
}

std::string create_vm() {
    std::string why;
    void* library = libjvm(why);
    if (library == nullptr) {
        return why;
    }
    auto present = reinterpret_cast<jint (*)(JavaVM**, jsize, jsize*)>(dlsym(library, "JNI_GetCreatedJavaVMs"));
    jsize count = 0;
    if (present != nullptr && present(&vm, 1, &count) == JNI_OK && count == 1) {
        return ""; /* started by another library, such as JPype */
    }
    /* -Xrs: leaves Ctrl-C to Python. */
    std::vector<std::string> texts{"-Djava.class.path=" + class_path(), "--enable-native-access=ALL-UNNAMED",
                                   "--sun-misc-unsafe-memory-access=allow", "-Xrs"};
    std::istringstream more(variable("CISTERN_JAVA_OPTS"));
    for (std::string word; more >> word;) {
        texts.push_back(word);
    }
    std::vector<JavaVMOption> options;
    for (std::string& text : texts) {
        options.push_back({&text[0], nullptr});
    }
    JavaVMInitArgs arguments{JNI_VERSION_21, static_cast<jint>(options.size()), options.data(), JNI_FALSE};
    auto create = reinterpret_cast<jint (*)(JavaVM**, void**, void*)>(dlsym(library, "JNI_CreateJavaVM"));
    void* env;
    const char* present_locale = setlocale(LC_ALL, nullptr);
    std::string locale = present_locale == nullptr ? "C" : present_locale;
    jint result = create == nullptr ? JNI_ERR : create(&vm, &env, &arguments);
    setlocale(LC_ALL, locale.c_str()); /* the JVM sets the environment's locale, in which 0.5 may be written 0,5 */
    if (result != JNI_OK) {
        vm = nullptr;
        return "the JVM can't be started (JNI error " + std::to_string(result) + "); the reason is on standard error";
    }
    vm->DetachCurrentThread(); /* a call from C attaches its thread, and the JVM detaches it when it ends */
    return "";
}

std::string text(JNIEnv* env, jstring string) {
    const char* characters = env->GetStringUTFChars(string, nullptr);
    std::string copy = characters == nullptr ? "the Java heap is full" : characters;
    if (characters != nullptr) {
        env->ReleaseStringUTFChars(string, characters);
    }
    return copy;
}

/* Returns the pending exception as a text, and clears it. */
std::string thrown(JNIEnv* env) {
    jthrowable exception = env->ExceptionOccurred();
    env->ExceptionClear();
    if (exception == nullptr) {
        return "no reason given";
    }
    jmethodID to_string = env->GetMethodID(env->GetObjectClass(exception), "toString", "()Ljava/lang/String;");
    auto said = static_cast<jstring>(env->CallObjectMethod(exception, to_string));
    env->ExceptionClear();
    return said == nullptr ? "no reason given" : text(env, said);
}

std::string open(JNIEnv* env, const char* allocator, const char* settings) {
    jclass host = env->FindClass("io/cistern/torch/TorchHost");
    if (host == nullptr) {
        return "Cistern is not on the JVM's class path (" + thrown(env) + "): its JARs belong in " + home()
            + "/lib, or in CISTERN_CLASSPATH";
    }
    jmethodID method = env->GetStaticMethodID(host, "open", "(JLjava/lang/String;Ljava/lang/String;)Ljava/lang/String;");
    jstring spec = allocator == nullptr ? nullptr : env->NewStringUTF(allocator);
    jstring lines = env->NewStringUTF(settings);
    if (method == nullptr || lines == nullptr || env->ExceptionCheck()) {
        return thrown(env);
    }
    auto refusal = static_cast<jstring>(
        env->CallStaticObjectMethod(host, method, reinterpret_cast<jlong>(&table), spec, lines));
    return env->ExceptionCheck() ? thrown(env) : refusal == nullptr ? "" : text(env, refusal);
}

void in_child() {
    forked_from = getppid();
    ready = nullptr;
}

std::string of_fork() {
    std::string parent = std::to_string(forked_from.load());
    return "this process was forked from process " + parent + " after Cistern had started there, and a JVM does not outlive a fork: "
        + "start workers with the method 'spawn' (torch.multiprocessing), or enable Cistern only in the workers";
}

}  // namespace

std::string start(const char* allocator, const char* settings) {
    if (forked_from != 0) {
        return of_fork();
    }
    std::lock_guard<std::mutex> one(starting);
    if (ready != nullptr) {
        return "";
    }
    failure = vm == nullptr ? create_vm() : "";
    if (failure.empty()) {
        static const int registered = pthread_atfork(nullptr, nullptr, in_child);
        (void) registered;
        JNIEnv* env;
        bool attached = vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_21) == JNI_OK;
        if (!attached && vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), nullptr) != JNI_OK) {
            return failure = "the JVM could not attach this thread";
        }
        failure = open(env, allocator, settings);
        if (!attached) {
            vm->DetachCurrentThread();
        }
    }
    if (failure.empty()) {
        ready = &table;
    }
    return failure;
}

const Functions* functions(std::string& why) {
    const Functions* present = ready.load(std::memory_order_acquire);
    if (present == nullptr) {
        why = start(nullptr, "");
        present = ready.load(std::memory_order_acquire);
    }
    return present;
}

}  // namespace cistern
