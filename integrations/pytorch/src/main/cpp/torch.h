/* Access to the PyTorch in this process. This library is not linked with it, so any version will do. */
#ifndef CISTERN_TORCH_PROCESS_H
#define CISTERN_TORCH_PROCESS_H

#include <string>

namespace cistern {

/* Returns whether PyTorch is in this process and so catches exceptions. */
bool torch_is_loaded();

/* Throws an exception that PyTorch turns into torch.OutOfMemoryError. */
[[noreturn]] void throw_out_of_memory(const std::string& text);

/* Returns the stream that is current on this thread. Throws std::runtime_error if PyTorch does not report it. */
void* current_stream(int device);

}  // namespace cistern

#endif
