package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaError;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// JCuda's malloc with Cistern's memory, on two simulated devices, within a limit of 1 MiB.
class CisternMallocTests {
    private static final long TOO_MUCH = 2 << 20;
    private static final long FOREIGN_CONTEXT = 0xf0;
    private static final boolean DRIVER_API = EmptyLibcuda.load();

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(), List.of()))
            .limitBytes(1 << 20)
            .open();
    private final Allocator plain = memory.open(OpenOptions.made("plain", new PlainMemory()));
    private final CUdeviceptr pointer = new CUdeviceptr();
    private final Pointer runtimePointer = new Pointer();

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            gpu.memory().free(device, address);
        }
    }

    CisternMallocTests() {
        memory.currents().set(plain);
    }

    @AfterEach
    void close() {
        assertThat(memory.leaks()).isEmpty();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void mallocTakesMemoryOfTheCurrentAllocator() {
        assertThat(CisternMalloc.cuMemAlloc(memory, 0, pointer, 1000)).isEqualTo(CUresult.CUDA_SUCCESS);
        assertThat(plain.statistics(0).requestedBytes()).isEqualTo(1000);
        gpu.copies().fillBytes(0, JCudaPointers.address(pointer), (byte) 1, 1000, Streams.LEGACY_DEFAULT);
        assertThat(CisternMalloc.cuMemFree(memory, pointer)).isEqualTo(CUresult.CUDA_SUCCESS);
        assertThat(CisternMalloc.cuMemFree(memory, pointer)).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
    }

    @Test
    void mallocAnswersWithTheResultsOfCuda() {
        assertThat(CisternMalloc.cuMemAlloc(memory, 0, pointer, 0)).isEqualTo(CUresult.CUDA_ERROR_INVALID_VALUE);
        assertThat(CisternMalloc.cuMemAlloc(memory, 0, pointer, TOO_MUCH)).isEqualTo(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        assertThat(CisternMalloc.cudaMalloc(memory, runtimePointer, TOO_MUCH))
                .isEqualTo(cudaError.cudaErrorMemoryAllocation);
        assertThat(CisternMalloc.cudaFree(memory, JCudaPointers.of(4096))).isEqualTo(cudaError.cudaErrorInvalidValue);
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> CisternMalloc.cuMemAlloc(memory, 7, pointer, 10));
    }

    @Test
    void mallocTakesTheDeviceOfTheCurrentContext() {
        try (JCudaContext _ = JCudaContext.enter(memory, 1)) {
            assertThat(CisternMalloc.cuMemAlloc(memory, pointer, 1000)).isEqualTo(CUresult.CUDA_SUCCESS);
            assertThat(CisternMalloc.cudaMalloc(memory, runtimePointer, 500)).isEqualTo(cudaError.cudaSuccess);
            assertThat(plain.statistics(0).requestedBytes()).isZero();
            assertThat(plain.statistics(1).requestedBytes()).isEqualTo(1500);
        }
        assertThat(CisternMalloc.cuMemFree(memory, pointer)).isEqualTo(CUresult.CUDA_SUCCESS);
        assertThat(CisternMalloc.cudaFree(memory, runtimePointer)).isEqualTo(cudaError.cudaSuccess);
    }

    @Test
    void withoutAContextOnlyTheRuntimeApiHasADevice() {
        assertThat(CisternMalloc.cuMemAlloc(memory, pointer, 1000)).isEqualTo(CUresult.CUDA_ERROR_INVALID_CONTEXT);
        assertThat(CisternMalloc.cudaMalloc(memory, runtimePointer, 1000)).isEqualTo(cudaError.cudaSuccess);
        assertThat(plain.statistics(0).requestedBytes()).isEqualTo(1000);
        assertThat(CisternMalloc.cudaFree(memory, runtimePointer)).isEqualTo(cudaError.cudaSuccess);
    }

    @Test
    void aContextOfTheProgramsOwnIsRefused() {
        gpu.devices().leaveContext(0, FOREIGN_CONTEXT);
        assertThat(CisternMalloc.cuMemAlloc(memory, pointer, 1000)).isEqualTo(CUresult.CUDA_ERROR_INVALID_CONTEXT);
        assertThat(CisternMalloc.cudaMalloc(memory, runtimePointer, 1000))
                .isEqualTo(cudaError.cudaErrorDeviceUninitialized);
        assertThat(plain.statistics(0).allocations()).isZero();
    }

    @Test
    void onAVirtualThreadTheDeviceHasToBeNamed() throws Exception {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        AtomicReference<Throwable> thrownByRuntime = new AtomicReference<>();
        Thread.startVirtualThread(() -> {
                    thrown.set(catchThrowable(() -> CisternMalloc.cuMemAlloc(memory, pointer, 1000)));
                    thrownByRuntime.set(catchThrowable(() -> CisternMalloc.cudaMalloc(memory, runtimePointer, 1000)));
                    CisternMalloc.cuMemAlloc(memory, 1, pointer, 1000);
                })
                .join();
        assertThat(thrown.get()).isInstanceOf(IllegalStateException.class).hasMessageContaining("name the device");
        assertThat(thrownByRuntime.get()).isInstanceOf(IllegalStateException.class);
        assertThat(CisternMalloc.cuMemFree(memory, pointer)).isEqualTo(CUresult.CUDA_SUCCESS);
    }

    @Test
    void afterSetExceptionsEnabledTheDriverApiThrows() {
        assumeTrue(DRIVER_API, "no gcc on the PATH");
        JCudaDriver.setExceptionsEnabled(true);
        try {
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cuMemAlloc(memory, 0, pointer, TOO_MUCH))
                    .withMessage("CUDA_ERROR_OUT_OF_MEMORY")
                    .withCauseInstanceOf(DeviceOutOfMemoryException.class);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cuMemAlloc(memory, pointer, 1000))
                    .withMessage("CUDA_ERROR_INVALID_CONTEXT");
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cuMemFree(memory, JCudaPointers.of(4096)))
                    .withMessage("CUDA_ERROR_INVALID_VALUE");
        } finally {
            JCudaDriver.setExceptionsEnabled(false);
        }
    }

    @Test
    void afterSetExceptionsEnabledTheRuntimeApiThrows() {
        JCuda.setExceptionsEnabled(true);
        try {
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cudaMalloc(memory, runtimePointer, TOO_MUCH))
                    .withMessage("cudaErrorMemoryAllocation")
                    .withCauseInstanceOf(DeviceOutOfMemoryException.class);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cudaFree(memory, JCudaPointers.of(4096)))
                    .withMessage("cudaErrorInvalidValue");
            assertThat(CisternMalloc.cudaMalloc(memory, runtimePointer, 1000)).isEqualTo(cudaError.cudaSuccess);
            assertThat(CisternMalloc.cudaFree(memory, runtimePointer)).isEqualTo(cudaError.cudaSuccess);
        } finally {
            JCuda.setExceptionsEnabled(false);
        }
    }
}
