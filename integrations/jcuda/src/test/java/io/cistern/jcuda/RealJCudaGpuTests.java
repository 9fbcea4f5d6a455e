package io.cistern.jcuda;

import static jcuda.driver.JCudaDriver.cuCtxCreate;
import static jcuda.driver.JCudaDriver.cuCtxDestroy;
import static jcuda.driver.JCudaDriver.cuCtxSetCurrent;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuDeviceGetCount;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRelease;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRetain;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;
import static jcuda.driver.JCudaDriver.cuPointerGetAttribute;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.DeviceMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

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

    @Test
    void memoryThatIsNotThereIsJCudasException() {
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> CisternMalloc.cuMemAlloc(pointer, TOO_MUCH))
                .withMessage("CUDA_ERROR_OUT_OF_MEMORY")
                .withCauseInstanceOf(DeviceOutOfMemoryException.class);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> CisternMalloc.cudaMalloc(new Pointer(), TOO_MUCH))
                .withMessage("cudaErrorMemoryAllocation");
        assertThat(DeviceMemory.system().leaks()).isEmpty();
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
