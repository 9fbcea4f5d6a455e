/* What PyTorch does with the hooks: catches what they throw. usage: catches LIBRARY */
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <utility>

#include "fake_c10.h"

typedef std::pair<unsigned long long, unsigned long long> PoolId;

static void* library;

template <typename Function>
static Function* hook(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

static void tell(const char* what, const std::function<void()>& call) {
    try {
        call();
        printf("%s: done\n", what);
    } catch (const c10::OutOfMemoryError& error) {
        printf("%s: OutOfMemoryError: %s\n", what, error.what());
    } catch (const std::exception& error) {
        printf("%s: exception: %s\n", what, error.what());
    }
    fflush(stdout);
}

int main(int, char** arguments) {
    library = dlopen(arguments[1], RTLD_NOW);
    if (library == nullptr) {
        puts(dlerror());
        return 1;
    }
    auto take = hook<void*(ssize_t, int, void*)>("cistern_malloc");
    auto give = hook<void(void*, ssize_t, int, void*)>("cistern_free");
    auto fraction = hook<void(double, int)>("cistern_set_memory_fraction");
    auto begin = hook<void(int, PoolId, std::function<bool(void*)>)>("cistern_begin_pool");
    auto end = hook<void(int, PoolId)>("cistern_end_pool");
    auto release = hook<void(int, PoolId)>("cistern_release_pool");

    tell("allocate", [=] { give(take(1000, 0, nullptr), 1000, 0, nullptr); });
    tell("nothing", [=] { printf("%d ", take(0, 0, nullptr) == nullptr); });
    tell("too much", [=] { take(1L << 60, 0, nullptr); });
    tell("no such device", [=] { take(1000, 9, nullptr); });
    tell("fraction of no device", [=] { fraction(0.5, 9); });
    void* asked = nullptr;
    auto filter = [&asked](void* stream) {
        asked = stream;
        return false;
    };
    tell("begin", [&] { begin(0, {5, 0}, filter); });
    printf("stream %ld\n", reinterpret_cast<long>(asked));
    tell("end", [=] { end(0, {5, 0}); });
    tell("end again", [=] { end(0, {6, 0}); });
    tell("release", [=] { release(0, {5, 0}); });
    tell("no capture", [=] { begin(0, {0, 7}, [](void*) { return true; }); });
    if (fork() == 0) {
        tell("forked", [=] { take(1000, 0, nullptr); });
        _exit(0);
    }
    wait(nullptr);
    return 0;
}
