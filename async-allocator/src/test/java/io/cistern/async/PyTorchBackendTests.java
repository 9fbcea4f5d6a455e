package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import org.junit.jupiter.api.Test;

/// `backend:cudaMallocAsync` in a whole PyTorch string.
class PyTorchBackendTests extends AsyncFixture {
    private static final String SPEC =
            "caching:pytorch=\"backend:cudaMallocAsync,max_split_size_mb:64,pinned_num_register_threads:8\"";

    private void assertOfTheDriversPools(Allocator chosen) {
        long created = gpu.calls().of(DriverCall.MEM_CREATE);
        long address = chosen.allocate(3 * MIB, DEVICE, stream);
        assertThat(gpu.calls().of(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC)).isPositive();
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).isEqualTo(created);
        memory.free(address, stream);
    }

    @Test
    void opensAsync() {
        try (Allocator chosen = memory.open(SPEC)) {
            assertOfTheDriversPools(chosen);
            assertThat(chosen.name()).isEqualTo("async");
            assertThat(chosen.spec().name()).isEqualTo("async");
            assertThat(chosen.spec().text()).as("as it was given").isEqualTo(SPEC);
        }
    }

    @Test
    void isCurrentOnce() {
        memory.setCurrent(SPEC);
        Allocator chosen = memory.current(DEVICE);
        memory.setCurrent(SPEC);
        assertThat(memory.current(DEVICE)).isSameAs(chosen);
        assertOfTheDriversPools(chosen);
    }

    @Test
    void opensPoolsToo() {
        try (MemoryPool pool = memory.pools().open(SPEC)) {
            assertOfTheDriversPools(pool);
            assertThat(pool.spec().name()).isEqualTo("async");
            assertThat(pool.name()).isEqualTo("async");
        }
    }

    /// PyTorch's backend takes the memory of graphs from the driver, too.
    @Test
    void graphsHaveTheDriversMemory() {
        memory.setCurrent(SPEC);
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            memory.free(memory.allocate(MIB, DEVICE, stream), stream);
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(stream);
                gpu.streams().synchronize(DEVICE, stream);
            }
        }
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).isZero();
    }
}
