/* The JVM inside this process, and the functions that it hands out. */
#ifndef CISTERN_HOST_H
#define CISTERN_HOST_H

#include <string>

namespace cistern {

/* In the order in which TorchFunctions.java writes them. */
struct Functions {
    void* (*allocate)(long size, int device, void* stream);
    void (*release)(void* block, void* stream);
    int (*record_use)(void* block, void* stream);
    int (*command)(const char* text, char* answer, long capacity);
};

/* The results of command and record_use. */
enum Result { DONE = 0, FAILED = 1, OUT_OF_MEMORY = 2 };

/* The functions; null if they are not available, with the reason in `why`. Starts Cistern as configured if nothing has started it. */
const Functions* functions(std::string& why);

/* Starts Cistern. Returns the reason for a failure, or an empty text. */
std::string start(const char* allocator, const char* settings);

}  // namespace cistern

#endif
