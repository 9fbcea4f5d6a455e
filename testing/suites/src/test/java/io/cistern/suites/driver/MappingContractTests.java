package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.Test;

/// Handles are mapped and unmapped as a whole.
abstract class MappingContractTests extends VirtualMemoryContractTests {
    MappingContractTests(DriverContract suite) {
        super(suite);
    }

    private void assertNotMapped(long address, long pages, long handle, CudaResult result) {
        assertFails(
                () -> driver.virtualMemory().map(DEVICE, address, pages * page, handle), DriverCall.MEM_MAP, result);
    }

    @Test
    void aHandleIsMappedWholeOrNotAtAll() {
        long address = reserve(4);
        long handle = create(2);
        assertNotMapped(address, 1, handle, CudaResult.NOT_SUPPORTED);
        assertNotMapped(address, 3, handle, CudaResult.NOT_SUPPORTED);
        map(address, 2, handle);
    }

    @Test
    void aMappingOfNothingIsAnInvalidValue() {
        assertNotMapped(reserve(1), 0, create(1), CudaResult.INVALID_VALUE);
    }

    @Test
    void aMappingBeginsAtAPage() {
        assertNotMapped(reserve(4) + 4096, 1, create(1), CudaResult.INVALID_VALUE);
    }

    @Test
    void nothingIsMappedOverAMapping() {
        long address = reserve(4);
        map(address, 2, create(2));
        long other = create(1);
        assertNotMapped(address, 1, other, CudaResult.INVALID_VALUE);
        assertNotMapped(address + page, 1, other, CudaResult.INVALID_VALUE);
        map(address + 2 * page, 1, other);
    }

    @Test
    void nothingIsMappedOutsideAReservation() {
        long address = driver.virtualMemory().reserve(DEVICE, page, 0, 0);
        driver.virtualMemory().freeReservation(DEVICE, address, page);
        assertNotMapped(address, 1, create(1), CudaResult.INVALID_VALUE);
    }

    @Test
    void aMappingIsUnmappedWhole() {
        long address = reserve(2);
        map(address, 2, create(2));
        for (long start : new long[] {address, address + page}) {
            assertFails(
                    () -> driver.virtualMemory().unmap(DEVICE, start, page),
                    DriverCall.MEM_UNMAP,
                    CudaResult.INVALID_VALUE);
        }
    }

    @Test
    void severalMappingsAreUnmappedAtOnce() {
        long address = reserve(3);
        long first = create(1);
        long second = create(2);
        driver.virtualMemory().map(DEVICE, address, page, first);
        driver.virtualMemory().map(DEVICE, address + page, 2 * page, second);
        driver.virtualMemory().unmap(DEVICE, address, 3 * page);
        assertThatCode(() -> map(address, 2, second)).doesNotThrowAnyException(); // the place is free again
    }

    @Test
    void holesAreUnmappedWithoutComplaint() {
        long address = reserve(4);
        long handle = create(1);
        driver.virtualMemory().map(DEVICE, address + page, page, handle);
        driver.virtualMemory().unmap(DEVICE, address, 4 * page);
        driver.virtualMemory().unmap(DEVICE, address, 4 * page);
        assertThatCode(() -> map(address, 1, handle)).doesNotThrowAnyException(); // the place is free again
    }

    @Test
    void unmappingNothingOrPlainMemoryIsAnInvalidValue() {
        long reserved = reserve(1);
        long linear = linear(page);
        assertFails(
                () -> driver.virtualMemory().unmap(DEVICE, reserved, 0),
                DriverCall.MEM_UNMAP,
                CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.virtualMemory().unmap(DEVICE, linear, page),
                DriverCall.MEM_UNMAP,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void mappedMemoryIsNotFreedAsPlainMemory() {
        long stream = stream();
        long address = mapped(1);
        assertFails(() -> driver.memory().free(DEVICE, address), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.pools().free(DEVICE, address, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void fillsAndCopiesRunAcrossMappings() {
        long stream = stream();
        long address = reserve(2);
        map(address, 1, create(1));
        map(address + page, 1, create(1));
        open(address, 2);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 2 * page, stream);
        driver.copies().fillBytes(DEVICE, address + page - 100, (byte) 2, 200, stream);
        byte[] bytes = host(2 * page).readFrom(address, stream).bytes();
        byte[] expected = HostBytes.filled(2 * page, 1);
        java.util.Arrays.fill(expected, (int) page - 100, (int) page + 100, (byte) 2);
        assertThat(bytes).isEqualTo(expected);
    }

    @Test
    void noneOfTheCallsWaitsForRunningWork() {
        StreamLatch latch = latch();
        long stream = stream();
        long address = reserve(1);
        long handle = create(1);
        latch.hold(stream);
        for (int i = 0; i < 3; i++) {
            driver.virtualMemory().map(DEVICE, address, page, handle);
            open(address, 1);
            driver.virtualMemory().unmap(DEVICE, address, page);
        }
        assertThat(driver.streams().isIdle(DEVICE, stream)).isFalse();
    }
}
