package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaError;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Rows at multiples of the pitch, which is the driver's: multiples of 512 bytes.
class PitchedMallocTests {
    private final MallocFixture fixture = new MallocFixture();
    private final Pointer pointer = new Pointer();
    private final long[] pitch = {-1};

    @AfterEach
    void close() {
        fixture.close();
    }

    private int runtime(long width, long height) {
        return fixture.runtime.allocateRows(pointer, pitch, width, height, Streams.LEGACY_DEFAULT);
    }

    private int driver(CUdeviceptr rows, long width, long height) {
        return fixture.driver.allocateRows(rows, pitch, width, height, Streams.LEGACY_DEFAULT);
    }

    @ParameterizedTest
    @CsvSource({"1, 512", "511, 512", "512, 512", "513, 1024", "1000, 1024", "5000, 5120"})
    void rowsBeginAtMultiplesOfThePitch(long width, long expected) {
        assertThat(runtime(width, 10)).isEqualTo(cudaError.cudaSuccess);
        assertThat(pitch).containsExactly(expected);
        assertThat(fixture.plain.statistics(0).requestedBytes()).isEqualTo(10 * expected);
        fixture.gpu
                .copies()
                .fillBytes(0, JCudaPointers.address(pointer), (byte) 1, 10 * expected, Streams.LEGACY_DEFAULT);
        assertThat(fixture.runtime.free(pointer, Streams.LEGACY_DEFAULT)).isZero();
    }

    @Test
    void theDriverApiHasTheSamePitch() {
        CUdeviceptr rows = new CUdeviceptr();
        try (JCudaContext _ = JCudaContext.enter(fixture.memory, 1)) {
            assertThat(driver(rows, 1000, 3)).isEqualTo(CUresult.CUDA_SUCCESS);
        }
        assertThat(pitch).containsExactly(1024);
        assertThat(fixture.plain.statistics(1).requestedBytes()).isEqualTo(3 * 1024);
        assertThat(fixture.driver.free(rows, Streams.LEGACY_DEFAULT)).isZero();
    }

    @Test
    void layersAreRowsBehindRows() {
        cudaPitchedPtr pitched = new cudaPitchedPtr();
        assertThat(fixture.runtime.allocateLayers(pitched, new cudaExtent(1000, 10, 4), Streams.LEGACY_DEFAULT))
                .isZero();
        assertThat(pitched.pitch).isEqualTo(1024);
        assertThat(pitched.xsize).isEqualTo(1000);
        assertThat(pitched.ysize).isEqualTo(10);
        assertThat(fixture.plain.statistics(0).requestedBytes()).isEqualTo(4 * 10 * 1024);
        assertThat(fixture.runtime.free(pitched.ptr, Streams.LEGACY_DEFAULT)).isZero();
    }

    @Test
    void noRowsAreNoMemoryOrAnErrorAsTheApiHasIt() {
        assertThat(runtime(0, 10)).isZero();
        assertThat(runtime(10, 0)).isZero();
        assertThat(pitch).containsExactly(0);
        assertThat(JCudaPointers.address(pointer)).isZero();
        assertThat(runtime(-1, 10)).isEqualTo(cudaError.cudaErrorInvalidValue);
        CUdeviceptr rows = new CUdeviceptr();
        try (JCudaContext _ = JCudaContext.enter(fixture.memory, 0)) {
            assertThat(driver(rows, 0, 10)).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
            assertThat(driver(rows, 10, 0)).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
        }
        assertThat(CisternMalloc.cuMemAllocPitch(rows, pitch, 10, 10, 5)).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
        assertThat(fixture.plain.statistics(0).allocations()).isZero();
    }

    @ParameterizedTest
    @CsvSource({
        "4000, 1000",
        "9223372036854775807, 1",
        "9223372036854775000, 9223372036854775807",
        "4611686018427387904, 4"
    })
    void moreThanThereIsIsOutOfMemory(long width, long height) {
        assertThat(runtime(width, height)).isEqualTo(cudaError.cudaErrorMemoryAllocation);
        assertThat(fixture.plain.statistics(0).requestedBytes()).isZero();
    }

    @Test
    void afterSetExceptionsEnabledFailuresAreThrown() {
        JCuda.setExceptionsEnabled(true);
        try {
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> runtime(4000, 1000))
                    .withMessage("cudaErrorMemoryAllocation")
                    .withCauseInstanceOf(DeviceOutOfMemoryException.class);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> runtime(-1, 1))
                    .withMessage("cudaErrorInvalidValue")
                    .havingCause()
                    .withMessageContaining("-1");
        } finally {
            JCuda.setExceptionsEnabled(false);
        }
    }
}
