package io.cistern.jcuda;

import static jcuda.driver.JCudaDriver.cuCtxCreate;
import static jcuda.driver.JCudaDriver.cuCtxDestroy;
import static jcuda.driver.JCudaDriver.cuCtxGetCurrent;
import static jcuda.driver.JCudaDriver.cuCtxSetCurrent;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuDeviceGetCount;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRelease;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRetain;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoHAsync;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;
import static jcuda.driver.JCudaDriver.cuMemsetD8;
import static jcuda.driver.JCudaDriver.cuMemsetD8Async;
import static jcuda.driver.JCudaDriver.cuPointerGetAttribute;
import static jcuda.driver.JCudaDriver.cuStreamCreate;
import static jcuda.driver.JCudaDriver.cuStreamDestroy;
import static jcuda.driver.JCudaDriver.cuStreamSynchronize;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.BindingBlocks;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUmemAttach_flags;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;
import jcuda.runtime.cudaPointerAttributes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// JCuda itself with Cistern's memory, on the last device of the machine.
@Tag("gpu")
class RealJCudaGpuTests {
    private static final long TOO_MUCH = 1L << 46;

    private final CUdevice device = new CUdevice();
    private final CUcontext context = new CUcontext();
    private final CUdeviceptr pointer = new CUdeviceptr();
    private int last;

    @BeforeEach
    void makeTheLastDeviceCurrent() {
        JCudaDriver.setExceptionsEnabled(true);
        JCuda.setExceptionsEnabled(true);
        cuInit(0);
        int[] count = new int[1];
        cuDeviceGetCount(count);
        last = count[0] - 1;
        cuDeviceGet(device, last);
        cuDevicePrimaryCtxRetain(context, device);
        cuCtxSetCurrent(context);
    }

    @AfterEach
    void letGo() {
        cuCtxSetCurrent(new CUcontext());
        cuDevicePrimaryCtxRelease(device);
        JCudaDriver.setExceptionsEnabled(false);
        JCuda.setExceptionsEnabled(false);
    }

    @Test
    void memoryIsOnTheDeviceOfTheContextThatJCudaMadeCurrent() {
        CisternMalloc.cuMemAlloc(pointer, 1000);
        int[] ordinal = {-1};
        cuPointerGetAttribute(Pointer.to(ordinal), CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
        assertThat(ordinal[0]).isEqualTo(last);
        int[] sent = {3, 1, 4, 1, 5};
        int[] got = new int[5];
        cuMemcpyHtoD(pointer, Pointer.to(sent), 20);
        cuMemcpyDtoH(Pointer.to(got), pointer, 20);
        assertThat(got).isEqualTo(sent);
        CisternMalloc.cuMemFree(pointer);
    }

    @Test
    void theRuntimeApiAllocatesOnTheDeviceThatItHasSet() {
        JCuda.cudaSetDevice(last);
        Pointer runtimePointer = new Pointer();
        CisternMalloc.cudaMalloc(runtimePointer, 1000);
        JCuda.cudaMemset(runtimePointer, 7, 1000);
        byte[] got = new byte[1];
        JCuda.cudaMemcpy(Pointer.to(got), runtimePointer, 1, jcuda.runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost);
        assertThat(got[0]).isEqualTo((byte) 7);
        CisternMalloc.cudaFree(runtimePointer);
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "500, 4", "512, 8", "513, 16", "4097, 4", "65536, 4", "1000001, 16"})
    void thePitchIsTheDriversOwn(long width, int elementSize) {
        long[] driver = new long[1];
        long[] ours = new long[1];
        JCudaDriver.cuMemAllocPitch(pointer, driver, width, 3, elementSize);
        JCudaDriver.cuMemFree(pointer);
        CisternMalloc.cuMemAllocPitch(pointer, ours, width, 3, elementSize);
        assertThat(ours).isEqualTo(driver);
        assertThat(JCudaPointers.address(pointer) % 512).isZero();
        cuMemsetD8(pointer, (byte) 1, 3 * ours[0]);
        CisternMalloc.cuMemFree(pointer);
        Pointer rows = new Pointer();
        JCuda.cudaMallocPitch(rows, driver, width, 3);
        JCuda.cudaFree(rows);
        CisternMalloc.cudaMallocPitch(rows, ours, width, 3);
        assertThat(ours).isEqualTo(driver);
        CisternMalloc.cudaFree(rows);
    }

    @Test
    void layersHaveThePitchAndSizesOfTheRuntimes() {
        cudaPitchedPtr runtime = new cudaPitchedPtr();
        cudaPitchedPtr ours = new cudaPitchedPtr();
        JCuda.cudaMalloc3D(runtime, new cudaExtent(1000, 10, 4));
        CisternMalloc.cudaMalloc3D(ours, new cudaExtent(1000, 10, 4));
        assertThat(List.of(ours.pitch, ours.xsize, ours.ysize))
                .isEqualTo(List.of(runtime.pitch, runtime.xsize, runtime.ysize));
        JCuda.cudaMemset3D(ours, 1, new cudaExtent(1000, 10, 4));
        JCuda.cudaFree(runtime.ptr);
        CisternMalloc.cudaFree(ours.ptr);
    }

    @Test
    void rowsOfNothingAreWhatTheRuntimeSays() {
        JCuda.setExceptionsEnabled(false);
        for (long[] size : new long[][] {{0, 10}, {10, 0}}) {
            long[] runtimePitch = {-1};
            long[] ours = {-1};
            Pointer rows = new Pointer();
            int result = JCuda.cudaMallocPitch(new Pointer(), runtimePitch, size[0], size[1]);
            assertThat(CisternMalloc.cudaMallocPitch(rows, ours, size[0], size[1]))
                    .isEqualTo(result);
            assertThat(ours).isEqualTo(runtimePitch);
        }
    }

    @Test
    void memoryInTheOrderOfAStream() {
        CUstream stream = new CUstream();
        cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        byte[] got = new byte[1000];
        CisternMalloc.cuMemAllocAsync(pointer, 1000, stream);
        cuMemsetD8Async(pointer, (byte) 5, 1000, stream);
        cuMemcpyDtoHAsync(Pointer.to(got), pointer, 1000, stream);
        CisternMalloc.cuMemFreeAsync(pointer, stream);
        cuStreamSynchronize(stream);
        assertThat(got).containsOnly(5);
        JCudaStreams.foreign(DeviceMemory.system(), last, stream).announceEnd();
        cuStreamDestroy(stream);
    }

    @Test
    void managedMemoryIsJCudasAndIsFreedByTheSameNames() {
        CisternMalloc.cuMemAllocManaged(pointer, 4096, CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL);
        int[] managed = {0};
        cuPointerGetAttribute(Pointer.to(managed), CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer);
        assertThat(managed[0]).isNotZero();
        CisternMalloc.cuMemFree(pointer);
        Pointer runtime = new Pointer();
        CisternMalloc.cudaMallocManaged(runtime, 4096, JCuda.cudaMemAttachGlobal);
        CisternMalloc.cudaFree(runtime);
        assertThat(BindingBlocks.has(JCudaPointers.address(runtime))).isFalse();
    }

    /// With one device, both are the same.
    @Test
    void aPointerOfAnotherDeviceIsFreed() {
        Pointer first = new Pointer();
        Pointer second = new Pointer();
        JCuda.cudaSetDevice(0);
        CisternMalloc.cudaMalloc(first, 1000);
        JCuda.cudaSetDevice(last);
        CisternMalloc.cudaMalloc(second, 1000);
        cudaPointerAttributes attributes = new cudaPointerAttributes();
        JCuda.cudaPointerGetAttributes(attributes, first);
        assertThat(attributes.device).isZero();
        JCuda.cudaPointerGetAttributes(attributes, second);
        assertThat(attributes.device).isEqualTo(last);
        CisternMalloc.cudaFree(first);
        JCuda.cudaSetDevice(0);
        CisternMalloc.cudaFree(second);
        assertThat(DeviceMemory.system().liveBlocks()).isEmpty();
    }

    @Test
    void aProgramThatMakesAContextGetsThePrimaryOne() {
        CUcontext made = new CUcontext();
        CisternMalloc.cuCtxCreate(made, 0, device);
        assertThat(made).isEqualTo(context);
        CisternMalloc.cuMemAlloc(pointer, 1000);
        CisternMalloc.cuMemFree(pointer);
        CisternMalloc.cuCtxDestroy(made);
        cuCtxSetCurrent(context); // it lives on
        CUcontext own = new CUcontext();
        cuCtxCreate(own, 0, device);
        CisternMalloc.cuCtxDestroy(own);
        CUcontext current = new CUcontext();
        cuCtxGetCurrent(current);
        assertThat(current).as("JCuda destroyed it").isNotEqualTo(own);
    }

    @Test
    void memoryThatIsNotThereIsJCudasException() {
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> CisternMalloc.cuMemAlloc(pointer, TOO_MUCH))
                .withMessage("CUDA_ERROR_OUT_OF_MEMORY")
                .withCauseInstanceOf(DeviceOutOfMemoryException.class);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> CisternMalloc.cudaMalloc(new Pointer(), TOO_MUCH))
                .withMessage("cudaErrorMemoryAllocation");
        assertThat(DeviceMemory.system().liveBlocks()).isEmpty();
    }

    @Test
    void aContextOfTheProgramsOwnIsRefused() {
        CUcontext own = new CUcontext();
        cuCtxCreate(own, 0, device);
        try {
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cuMemAlloc(pointer, 1000))
                    .withMessage("CUDA_ERROR_INVALID_CONTEXT");
        } finally {
            cuCtxDestroy(own);
        }
    }
}
