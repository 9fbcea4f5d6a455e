/* As much of PyTorch's libc10.so and libc10_cuda.so as the library looks for. With INLINE, as in versions whose OutOfMemoryError has no
   constructor of its own in the library. */
#include "fake_c10.h"

namespace c10 {

Error::Error(SourceLocation where, std::string text) : text_(std::move(text)) {
    (void) where;
}
Error::~Error() = default;
const char* Error::what() const noexcept {
    return text_.c_str();
}

#ifdef INLINE
__attribute__((visibility("default"))) void someoneElseThrows() {
    throw OutOfMemoryError(SourceLocation{"", "", 0}, ""); /* so that type and table are in this library */
}
#else
OutOfMemoryError::OutOfMemoryError(SourceLocation where, std::string text) : Error(where, std::move(text)) {}
#endif

namespace cuda {
void* CUDAStream::stream() const {
    return reinterpret_cast<void*>(id);
}
CUDAStream getCurrentCUDAStream(signed char device) {
    return CUDAStream{1, device, 77};
}
}  // namespace cuda
}  // namespace c10
