package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.CudaStream;
import io.cistern.cuda.Streams;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Memory in the order of a stream of JCuda's.
class StreamOrderedMallocTests {
    private final MallocFixture fixture = new MallocFixture();
    private final CUdeviceptr pointer = new CUdeviceptr();

    @AfterEach
    void close() {
        fixture.close();
    }

    @Test
    void allocatorsHearOfTheStreams() {
        try (CudaStream own = CudaStream.open(fixture.memory, 1);
                CudaStream other = CudaStream.open(fixture.memory, 1);
                JCudaContext _ = JCudaContext.enter(fixture.memory, 1)) {
            assertThat(fixture.driver.allocate(pointer, 1000, JCudaStreams.handle(JCudaStreams.of(own))))
                    .isZero();
            assertThat(fixture.driver.free(pointer, JCudaStreams.handle(JCudaStreams.of(other))))
                    .isZero();
            assertThat(fixture.streams).containsExactly(own.handle(), other.handle());
        }
    }

    @Test
    void memoryOfAStreamIsFreedWithoutOneAndTheOtherWayRound() {
        try (CudaStream stream = CudaStream.open(fixture.memory, 0);
                JCudaContext _ = JCudaContext.enter(fixture.memory, 0)) {
            assertThat(fixture.runtime.allocate(pointer, 1000, stream.handle())).isZero();
            assertThat(fixture.runtime.free(pointer, Streams.LEGACY_DEFAULT)).isZero();
            assertThat(fixture.runtime.allocate(pointer, 1000, Streams.LEGACY_DEFAULT))
                    .isZero();
            assertThat(fixture.runtime.free(pointer, stream.handle())).isZero();
            assertThat(fixture.driver.free(pointer, stream.handle())).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
        }
        assertThat(fixture.plain.statistics(0).frees()).isEqualTo(2);
    }
}
