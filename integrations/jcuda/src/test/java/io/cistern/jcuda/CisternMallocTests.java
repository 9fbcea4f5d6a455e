package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.ToIntFunction;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaError;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// JCuda's malloc with Cistern's memory, on two simulated devices, within a limit of 1 MiB.
class CisternMallocTests {
    private static final long TOO_MUCH = 2 << 20;
    private static final long FOREIGN_CONTEXT = 0xf0;
    private static final boolean DRIVER_API = FakeLibcuda.load().isPresent();

    private final MallocFixture fixture = new MallocFixture();
    private final SimulatedGpu gpu = fixture.gpu;
    private final DeviceMemory memory = fixture.memory;
    private final Allocator plain = fixture.plain;
    private final JCudaMalloc driver = fixture.driver;
    private final JCudaMalloc runtime = fixture.runtime;
    private final CUdeviceptr pointer = new CUdeviceptr();
    private final Pointer runtimePointer = new Pointer();

    @AfterEach
    void close() {
        fixture.close();
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
        assertThat(runtime.allocate(runtimePointer, TOO_MUCH, Streams.LEGACY_DEFAULT))
                .isEqualTo(cudaError.cudaErrorMemoryAllocation);
        assertThat(runtime.free(JCudaPointers.of(4096), Streams.LEGACY_DEFAULT))
                .isEqualTo(cudaError.cudaErrorInvalidValue);
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> CisternMalloc.cuMemAlloc(memory, 7, pointer, 10));
    }

    @Test
    void pointersToJavaArraysAreForeign() {
        assertThat(CisternMalloc.cudaFree(Pointer.to(new int[4]))).isEqualTo(cudaError.cudaErrorInvalidValue);
        assertThat(CisternMalloc.cudaFreeAsync(Pointer.to(new int[4]), null))
                .isEqualTo(cudaError.cudaErrorInvalidValue);
    }

    /// The address of a freed block may be another's by then.
    @Test
    void aFailedAllocationLeavesNoAddress() {
        CUdeviceptr live = new CUdeviceptr();
        assertThat(CisternMalloc.cuMemAlloc(memory, 0, live, 1000)).isZero();
        List<ToIntFunction<CUdeviceptr>> failures = List.of(
                stale -> CisternMalloc.cuMemAlloc(memory, 0, stale, TOO_MUCH),
                stale -> runtime.allocate(stale, -1, Streams.LEGACY_DEFAULT),
                stale -> runtime.allocateRows(stale, new long[1], TOO_MUCH, 1, Streams.LEGACY_DEFAULT),
                stale -> CisternMalloc.cuMemAllocPitch(stale, new long[1], 10, 10, 3));
        for (ToIntFunction<CUdeviceptr> failing : failures) {
            CUdeviceptr stale = JCudaPointers.of(JCudaPointers.address(live));
            assertThat(failing.applyAsInt(stale)).isNotZero();
            assertThat(CisternMalloc.cuMemFree(memory, stale)).isZero();
        }
        cudaPitchedPtr rows = new cudaPitchedPtr();
        rows.ptr = live;
        assertThat(runtime.allocateLayers(rows, new cudaExtent(TOO_MUCH, 1, 1), 0))
                .isEqualTo(cudaError.cudaErrorMemoryAllocation);
        assertThat(JCudaPointers.address(rows.ptr)).isZero();
        assertThat(plain.statistics(0).liveBlocks()).isEqualTo(1);
        assertThat(CisternMalloc.cuMemFree(memory, live)).isZero();
    }

    @Test
    void anAllocationReplacesWhateverThePointerStoodFor() {
        for (Pointer reused : List.of(new Pointer().withByteOffset(512), Pointer.to(new int[4]))) {
            assertThat(runtime.allocate(reused, 1000, Streams.LEGACY_DEFAULT)).isZero();
            assertThat(runtime.free(reused, Streams.LEGACY_DEFAULT)).isZero();
        }
    }

    @Test
    void nullIsNamedAndAllocatesNothing() {
        assertNamed("pointer is null", () -> CisternMalloc.cudaFree(null));
        assertNamed("pointer is null", () -> CisternMalloc.cuMemFree(memory, null));
        assertNamed("device is null", () -> CisternMalloc.cuCtxCreate(new CUcontext(), 0, null));
        assertNamed("context is null", () -> driver.enterContext(null, 0));
        assertNamed("context is null", () -> CisternMalloc.cuCtxDestroy(null));
        assertNamed("pointer is null", () -> driver.allocate(null, 1000, Streams.LEGACY_DEFAULT));
        assertNamed("pointer is null", () -> CisternMalloc.cuMemAlloc(memory, 0, null, 1000));
        assertNamed("pointer is null", () -> runtime.allocateRows(null, new long[1], 10, 10, Streams.LEGACY_DEFAULT));
        assertNamed("pitch is null", () -> runtime.allocateRows(pointer, null, 10, 10, Streams.LEGACY_DEFAULT));
        assertNamed("extent is null", () -> runtime.allocateLayers(new cudaPitchedPtr(), null, 0));
        assertNamed("pitched is null", () -> runtime.allocateLayers(null, new cudaExtent(1, 1, 1), 0));
        assertThat(plain.statistics(0).requestedBytes()).isZero();
    }

    private static void assertNamed(String message, ThrowingCallable call) {
        assertThatExceptionOfType(NullPointerException.class).isThrownBy(call).withMessage(message);
    }

    @Test
    void mallocInAScopeIsHeldToTheScopesLimit() {
        MemoryLimit tenant = MemoryLimit.of("tenant", 4096);
        try (Scope _ = plain.enter(ScopeOptions.all().limit(tenant))) {
            assertThat(runtime.allocate(runtimePointer, 4096, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaSuccess);
            assertThat(runtime.allocate(new Pointer(), 1, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaErrorMemoryAllocation);
        }
        assertThat(tenant.usedBytes()).isEqualTo(4096);
        assertThat(runtime.free(runtimePointer, Streams.LEGACY_DEFAULT)).isEqualTo(cudaError.cudaSuccess);
        assertThat(tenant.usedBytes()).isZero();
    }

    @Test
    void mallocInTheScopeOfAClosedAllocatorIsRefused() {
        Allocator other = fixture.open("other");
        try (Scope _ = other.enter()) {
            other.close();
            assertThat(runtime.allocate(runtimePointer, 1000, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaErrorInvalidResourceHandle);
            assertThat(runtime.allocateRows(runtimePointer, new long[1], 10, 10, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaErrorInvalidResourceHandle);
            assertThat(CisternMalloc.cuMemAlloc(memory, 0, pointer, 1000))
                    .isEqualTo(CUresult.CUDA_ERROR_INVALID_HANDLE);
        }
    }

    @Test
    void mallocTakesTheDeviceOfTheCurrentContext() {
        try (JCudaContext _ = JCudaContext.enter(memory, 1)) {
            assertThat(driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT)).isEqualTo(CUresult.CUDA_SUCCESS);
            assertThat(runtime.allocate(runtimePointer, 500, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaSuccess);
            assertThat(plain.statistics(0).requestedBytes()).isZero();
            assertThat(plain.statistics(1).requestedBytes()).isEqualTo(1500);
        }
        assertThat(CisternMalloc.cuMemFree(memory, pointer)).isEqualTo(CUresult.CUDA_SUCCESS);
        assertThat(runtime.free(runtimePointer, Streams.LEGACY_DEFAULT)).isEqualTo(cudaError.cudaSuccess);
    }

    @Test
    void aBlockIsFreedWhateverDeviceIsCurrent() {
        for (int device = 0; device < 2; device++) {
            try (JCudaContext _ = JCudaContext.enter(memory, device)) {
                assertThat(driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT))
                        .isZero();
                assertThat(runtime.allocate(runtimePointer, 500, Streams.LEGACY_DEFAULT))
                        .isZero();
            }
            assertThat(plain.statistics(device).requestedBytes()).isEqualTo(1500);
            try (JCudaContext _ = JCudaContext.enter(memory, 1 - device)) {
                assertThat(driver.free(pointer, Streams.LEGACY_DEFAULT)).isZero();
                assertThat(runtime.free(runtimePointer, Streams.LEGACY_DEFAULT)).isZero();
            }
            assertThat(plain.statistics(device).requestedBytes()).isZero();
        }
    }

    @Test
    void aProgramThatMakesAContextGetsThePrimaryOne() {
        CUcontext context = new CUcontext();
        assertThat(driver.enterContext(context, 1)).isZero();
        assertThat(JCudaContext.isPrimary(memory, 1, context)).isTrue();
        assertThat(driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT)).isZero();
        assertThat(plain.statistics(1).requestedBytes()).isEqualTo(1000);
        assertThat(driver.free(pointer, Streams.LEGACY_DEFAULT)).isZero();
        assertThat(driver.enterContext(context, 7)).isEqualTo(CUresult.CUDA_ERROR_INVALID_DEVICE);
    }

    @Test
    void withoutAContextOnlyTheRuntimeApiHasADevice() {
        assertThat(driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT))
                .isEqualTo(CUresult.CUDA_ERROR_INVALID_CONTEXT);
        assertThat(runtime.allocate(runtimePointer, 1000, Streams.LEGACY_DEFAULT))
                .isEqualTo(cudaError.cudaSuccess);
        assertThat(plain.statistics(0).requestedBytes()).isEqualTo(1000);
        assertThat(runtime.free(runtimePointer, Streams.LEGACY_DEFAULT)).isEqualTo(cudaError.cudaSuccess);
    }

    @Test
    void aContextOfTheProgramsOwnIsRefused() {
        gpu.devices().leaveContext(0, FOREIGN_CONTEXT);
        assertThat(driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT))
                .isEqualTo(CUresult.CUDA_ERROR_INVALID_CONTEXT);
        assertThat(runtime.allocate(runtimePointer, 1000, Streams.LEGACY_DEFAULT))
                .isEqualTo(cudaError.cudaErrorDeviceUninitialized);
        assertThat(plain.statistics(0).allocations()).isZero();
    }

    @Test
    void onAVirtualThreadTheDeviceHasToBeNamed() throws Exception {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        AtomicReference<Throwable> thrownByRuntime = new AtomicReference<>();
        Thread.startVirtualThread(() -> {
                    thrown.set(catchThrowable(() -> driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT)));
                    thrownByRuntime.set(
                            catchThrowable(() -> runtime.allocate(runtimePointer, 1000, Streams.LEGACY_DEFAULT)));
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
                    .isThrownBy(() -> driver.allocate(pointer, 1000, Streams.LEGACY_DEFAULT))
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
                    .isThrownBy(() -> runtime.allocate(runtimePointer, TOO_MUCH, Streams.LEGACY_DEFAULT))
                    .withMessage("cudaErrorMemoryAllocation")
                    .withCauseInstanceOf(DeviceOutOfMemoryException.class);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> runtime.free(JCudaPointers.of(4096), Streams.LEGACY_DEFAULT))
                    .withMessage("cudaErrorInvalidValue");
            assertThat(runtime.allocate(runtimePointer, 1000, Streams.LEGACY_DEFAULT))
                    .isEqualTo(cudaError.cudaSuccess);
            assertThat(runtime.free(runtimePointer, Streams.LEGACY_DEFAULT)).isEqualTo(cudaError.cudaSuccess);
        } finally {
            JCuda.setExceptionsEnabled(false);
        }
    }
}
