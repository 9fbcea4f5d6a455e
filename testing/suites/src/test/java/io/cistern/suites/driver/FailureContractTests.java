package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import org.junit.jupiter.api.Test;

/// A failure names the call, its result and its arguments.
abstract class FailureContractTests extends DriverContractTests {
    FailureContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void aFailureCarriesCallCodeAndArguments() {
        CudaException failure = assertFails(
                () -> driver.memory().free(DEVICE, 0x1234_5600L), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
        assertThat(failure.code()).isEqualTo(1);
        assertThat(failure)
                .hasMessageContaining("cuMemFree_v2")
                .hasMessageContaining("CUDA_ERROR_INVALID_VALUE (1)")
                .hasMessageContaining("12345600");
    }

    @Test
    void anOutOfMemoryNamesTheSize() {
        long tooMuch = driver.devices().totalBytes(DEVICE) + 12_345;
        CudaException failure = assertFails(
                () -> driver.memory().allocate(DEVICE, tooMuch), DriverCall.MEM_ALLOC, CudaResult.OUT_OF_MEMORY);
        assertThat(failure).hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY (2)").hasMessageContaining("" + tooMuch);
    }

    @Test
    void aFailureLeavesTheDriverUsable() {
        for (int i = 0; i < 100; i++) {
            assertFails(() -> driver.memory().allocate(DEVICE, 0), DriverCall.MEM_ALLOC, CudaResult.INVALID_VALUE);
        }
        long stream = stream();
        long address = linear(4096);
        driver.copies().fillBytes(DEVICE, address, (byte) 2, 4096, stream);
        assertThat(host(4096).readFrom(address, stream).holdsOnly(2)).isTrue();
    }

    @Test
    void aClosedDriverRefusesEveryCall() {
        CudaDriver other = openAnotherDriver();
        other.close();
        other.close();
        assertFails(() -> other.memory().allocate(DEVICE, 4096), DriverCall.MEM_ALLOC, CudaResult.DEINITIALIZED);
    }
}
