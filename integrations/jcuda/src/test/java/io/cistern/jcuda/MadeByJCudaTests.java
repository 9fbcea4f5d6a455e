package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.buffers.internal.BindingBlocks;
import io.cistern.jvm.FakeLibrary;
import jcuda.CudaException;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUmemoryPool;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What JCuda allocates by our functions is freed by JCuda, through the same names.
class MadeByJCudaTests {
    private static final FakeLibrary FAKE = FakeLibcuda.load().orElse(null);

    private final CUdeviceptr pointer = new CUdeviceptr();
    private long freedBefore;

    @BeforeEach
    void count() {
        assumeTrue(FAKE != null, "no gcc on the PATH");
        freedBefore = FAKE.get("freed");
    }

    @AfterEach
    void nothingFails() {
        FakeLibcuda.load().ifPresent(fake -> fake.set("failing", 0));
    }

    private long freed() {
        return FAKE.get("freed") - freedBefore;
    }

    @Test
    void managedMemoryGoesBackToJCuda() {
        assertThat(CisternMalloc.cuMemAllocManaged(pointer, 1000, 1)).isZero();
        assertThat(BindingBlocks.has(JCudaPointers.address(pointer))).isTrue();
        assertThat(CisternMalloc.cuMemFree(pointer)).isZero();
        assertThat(freed()).isEqualTo(1);
        assertThat(BindingBlocks.has(JCudaPointers.address(pointer))).isFalse();
    }

    @Test
    void memoryOfAPoolGoesBackInTheOrderOfItsStream() {
        CUstream stream = HandleField.set(new CUstream(), 77);
        assertThat(CisternMalloc.cuMemAllocFromPoolAsync(pointer, 1000, new CUmemoryPool(), stream))
                .isZero();
        assertThat(CisternMalloc.cuMemFreeAsync(pointer, stream)).isZero();
        assertThat(freed()).isEqualTo(1);
        assertThat(FAKE.get("stream")).isEqualTo(77);
        assertThat(BindingBlocks.has(JCudaPointers.address(pointer))).isFalse();
    }

    @Test
    void whatJCudaRefusesToAllocateIsNotKnown() {
        FAKE.set("failing", 1);
        assertThat(CisternMalloc.cuMemAllocManaged(pointer, 1000, 1)).isEqualTo(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        assertThat(BindingBlocks.has(JCudaPointers.address(pointer))).isFalse();
    }

    @Test
    void whatJCudaRefusesToFreeCanBeFreedAgain() {
        assertThat(CisternMalloc.cuMemAllocManaged(pointer, 1000, 1)).isZero();
        FAKE.set("failing", 1);
        assertThat(CisternMalloc.cuMemFree(pointer)).isEqualTo(CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
        JCudaDriver.setExceptionsEnabled(true);
        try {
            FAKE.set("failing", 1);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> CisternMalloc.cuMemFree(pointer))
                    .withMessage("CUDA_ERROR_ILLEGAL_ADDRESS");
        } finally {
            JCudaDriver.setExceptionsEnabled(false);
        }
        assertThat(CisternMalloc.cuMemFree(pointer)).isZero();
        assertThat(freed()).isEqualTo(1);
    }
}
