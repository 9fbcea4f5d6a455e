/* The functions that PyTorch calls. A hook that fails throws, except where PyTorch calls it from a destructor. */
#include "cistern_torch.h"

#include <sstream>
#include <locale>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "host.h"
#include "torch.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using cistern::Functions;

namespace {

/* A c10::MempoolId_t. */
typedef std::pair<unsigned long long, unsigned long long> PoolId;

thread_local std::string error;

/* Returns the result, and in `text` the message, of the failure that just occurred on this thread. */
cistern::Result refusal(const Functions* functions, std::string& text) {
    char said[8192] = "";
    int result = functions->command("failure", said, sizeof said);
    text = said[0] == 0 ? "the Java heap is full" : said;
    return result == cistern::OUT_OF_MEMORY ? cistern::OUT_OF_MEMORY : cistern::FAILED;
}

void fail(cistern::Result result, const std::string& text) {
    error = text;
    if (!cistern::torch_is_loaded()) {
        return;
    }
    if (result == cistern::OUT_OF_MEMORY) {
        cistern::throw_out_of_memory("CUDA out of memory. Cistern: " + text);
    }
    throw std::runtime_error("Cistern: " + text);
}

/* Runs a command. Returns whether it succeeded. */
bool run(const std::string& command, char* answer, size_t capacity, cistern::Result& result, std::string& text) {
    const Functions* functions = cistern::functions(text);
    result = cistern::FAILED;
    if (functions != nullptr && functions->command(command.c_str(), answer, static_cast<long>(capacity)) == cistern::DONE) {
        return true;
    }
    if (functions != nullptr) {
        result = refusal(functions, text);
    }
    return false;
}

void run_or_fail(const std::string& command) {
    char answer[64];
    cistern::Result result;
    std::string text;
    if (!run(command, answer, sizeof answer, result, text)) {
        fail(result, text);
    }
}

std::string of_pool(const char* what, int device, PoolId id) {
    return std::string(what) + " " + std::to_string(device) + " " + std::to_string(id.first) + "/" + std::to_string(id.second);
}

}  // namespace

EXPORTED int cistern_start(const char* allocator, const char* settings) {
    error = cistern::start(allocator, settings == nullptr ? "" : settings);
    return error.empty() ? 0 : -1;
}

EXPORTED const char* cistern_error(void) {
    return error.c_str();
}

EXPORTED int cistern_command(const char* command, char* answer, size_t capacity) {
    cistern::Result result;
    return run(command, answer, capacity, result, error) ? 0 : -1;
}

EXPORTED void* cistern_malloc(ssize_t size, int device, void* stream) {
    std::string why;
    const Functions* functions = cistern::functions(why);
    if (functions == nullptr) {
        fail(cistern::FAILED, why);
        return nullptr;
    }
    void* block = functions->allocate(size, device, stream);
    if (block == nullptr && size != 0) {
        cistern::Result result = refusal(functions, why);
        fail(result, why);
    }
    return block;
}

/* In a forked child nothing is freed: the memory is the parent's. */
EXPORTED void cistern_free(void* block, ssize_t, int, void* stream) {
    std::string why;
    const Functions* functions = cistern::functions(why);
    if (functions != nullptr) {
        functions->release(block, stream);
    }
}

EXPORTED void cistern_record_stream(void* block, void* stream) {
    std::string why;
    const Functions* functions = cistern::functions(why);
    if (functions == nullptr) {
        fail(cistern::FAILED, why);
    } else if (functions->record_use(block, stream) != cistern::DONE) {
        cistern::Result result = refusal(functions, why);
        fail(result, why);
    }
}

EXPORTED void cistern_empty_cache(void) {
    run_or_fail("trim");
}

EXPORTED void cistern_set_memory_fraction(double fraction, int device) {
    std::ostringstream command;
    command.imbue(std::locale::classic());
    command.precision(17);
    command << "fraction " << device << ' ' << fraction;
    run_or_fail(command.str());
}

/* A capture begins on the current stream right after this call. A pool without a capture is refused: its filter already accepts the
   stream. */
EXPORTED void cistern_begin_pool(int device, PoolId id, std::function<bool(void*)> filter) {
    void* stream = cistern::current_stream(device);
    if (filter(stream)) {
        throw std::runtime_error("Cistern serves only pools of CUDA graphs: use neither torch.cuda.use_mem_pool"
                                 " nor mode='reduce-overhead' of torch.compile");
    }
    run_or_fail(of_pool("capture_begins", device, id) + " " + std::to_string(reinterpret_cast<unsigned long>(stream)));
}

EXPORTED void cistern_end_pool(int device, PoolId id) {
    run_or_fail(of_pool("capture_ends", device, id));
}

/* Called by a destructor. */
EXPORTED void cistern_release_pool(int device, PoolId id) {
    char answer[64];
    cistern::Result result;
    std::string text;
    if (!run(of_pool("pool_released", device, id), answer, sizeof answer, result, text)) {
        fprintf(stderr, "cistern: the memory of a graph can't be released: %s\n", text.c_str());
    }
}
