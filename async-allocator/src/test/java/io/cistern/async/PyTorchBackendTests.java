package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import org.junit.jupiter.api.Test;

/// `backend:cudaMallocAsync` in a whole PyTorch string.
class PyTorchBackendTests extends AsyncFixture {
    @Test
    void givesWhatAsyncGives() {
        try (Allocator chosen = memory.open(
                "caching:pytorch=\"backend:cudaMallocAsync,max_split_size_mb:64,pinned_num_register_threads:8\"")) {
            long address = chosen.allocate(3 * MIB, DEVICE, stream);

            assertThat(gpu.calls().of(io.cistern.cuda.DriverCall.MEM_ALLOC_FROM_POOL_ASYNC))
                    .isPositive();
            assertThat(gpu.calls().of(io.cistern.cuda.DriverCall.MEM_CREATE)).isZero();

            memory.free(address, stream);
        }
    }
}
