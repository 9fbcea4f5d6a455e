#include "torch.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <typeinfo>

namespace cistern {
namespace {

/* Python loads PyTorch's libraries without making their symbols global, so each library is searched, not the process. */
void* symbol(const char* name) {
    for (const char* library : {"libc10.so", "libc10_cuda.so", "libtorch_python.so", "libtorch_cuda.so"}) {
        void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        void* found = handle == nullptr ? nullptr : dlsym(handle, name);
        if (found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

/* As in c10/util/Exception.h. */
struct SourceLocation {
    const char* function;
    const char* file;
    uint32_t line;
};

/* The constructors c10::OutOfMemoryError(SourceLocation, std::string) and, of its base, c10::Error(...). */
typedef void (*Constructor)(void* self, SourceLocation where, std::string text);
const char* const OF_OUT_OF_MEMORY =
    "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
const char* const OF_ERROR = "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

/* More than four times the size of c10::Error. */
const size_t SIZE = 1024;

/* Both begin with std::exception, whose destructor is virtual. */
void destroy(void* error) {
    static_cast<std::exception*>(error)->~exception();
}

/* c10::cuda::CUDAStream: a device and a number. It is returned in two registers. */
struct Stream {
    int64_t device;
    int64_t id;
};

}  // namespace

bool torch_is_loaded() {
    return dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

/* If the class exports no constructor (it is inline in older versions), constructs its base and replaces the vtable. */
void throw_out_of_memory(const std::string& text) {
    void* type = symbol("_ZTIN3c1016OutOfMemoryErrorE");
    auto construct = reinterpret_cast<Constructor>(symbol(OF_OUT_OF_MEMORY));
    void* table = nullptr;
    if (construct == nullptr) {
        table = symbol("_ZTVN3c1016OutOfMemoryErrorE");
        construct = table == nullptr ? nullptr : reinterpret_cast<Constructor>(symbol(OF_ERROR));
    }
    if (type == nullptr || construct == nullptr) {
        throw std::runtime_error(text);
    }
    void* error = abi::__cxa_allocate_exception(SIZE);
    memset(error, 0, SIZE);
    construct(error, SourceLocation{"cistern_malloc", "libcistern_torch.so", 0}, text);
    if (table != nullptr) {
        *static_cast<void**>(error) = static_cast<char*>(table) + 2 * sizeof(void*);
    }
    abi::__cxa_throw(error, static_cast<std::type_info*>(type), destroy);
}

void* current_stream(int device) {
    auto current = reinterpret_cast<Stream (*)(int8_t)>(symbol("_ZN3c104cuda20getCurrentCUDAStreamEa"));
    auto handle = reinterpret_cast<void* (*)(const Stream*)>(symbol("_ZNK3c104cuda10CUDAStream6streamEv"));
    if (current == nullptr || handle == nullptr) {
        throw std::runtime_error("Cistern: this PyTorch does not report its current stream, so its graphs can't be served");
    }
    Stream stream = current(static_cast<int8_t>(device));
    return handle(&stream);
}

}  // namespace cistern
