/* What is needed of the PyTorch in this process, which this library is not linked with: any version will do. */
#ifndef CISTERN_TORCH_PROCESS_H
#define CISTERN_TORCH_PROCESS_H

#include <string>

namespace cistern {

/* Whether PyTorch is in this process, so that somebody catches what is thrown. */
bool torch_is_loaded();

/* Throws what PyTorch turns into torch.OutOfMemoryError. */
[[noreturn]] void throw_out_of_memory(const std::string& text);

/* The stream that is current on this thread. Throws std::runtime_error if PyTorch won't tell. */
void* current_stream(int device);

}  // namespace cistern

#endif
