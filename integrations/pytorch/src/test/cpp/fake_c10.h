#include <cstdint>
#include <exception>
#include <string>

#define API __attribute__((visibility("default")))

namespace c10 {

struct SourceLocation {
    const char* function;
    const char* file;
    uint32_t line;
};

class API Error : public std::exception {
    std::string text_;
    char more_[160] = {};

public:
    Error(SourceLocation where, std::string text);
    ~Error() override;
    const char* what() const noexcept override;
};

class API OutOfMemoryError : public Error {
#ifdef INLINE
    using Error::Error;
#else
public:
    OutOfMemoryError(SourceLocation where, std::string text);
#endif
#ifdef INLINE
    friend void someoneElseThrows();
#endif
};

namespace cuda {
class API CUDAStream {
public:
    signed char type;
    signed char device;
    int64_t id;
    void* stream() const;
};
API CUDAStream getCurrentCUDAStream(signed char device);
}  // namespace cuda
}  // namespace c10
