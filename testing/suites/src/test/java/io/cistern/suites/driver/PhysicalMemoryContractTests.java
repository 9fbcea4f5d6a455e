package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PhysicalMemory;
import org.junit.jupiter.api.Test;

/// Address ranges, physical memory, and the lifetime of each.
abstract class PhysicalMemoryContractTests extends VirtualMemoryContractTests {
    PhysicalMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    private long newHandle(long pages) {
        return driver.virtualMemory().create(pages * page, PhysicalMemory.onDevice(DEVICE));
    }

    @Test
    void theGranularityIsAPowerOfTwo() {
        assertThat(Long.bitCount(page)).isEqualTo(1);
        assertThat(page).isGreaterThanOrEqualTo(4096);
        assertThat(driver.virtualMemory().granularity(PhysicalMemory.onDevice(DEVICE), true) % page)
                .isZero();
    }

    @Test
    void handlesAreMultiplesOfTheGranularity() {
        for (long byteSize : new long[] {0, 1, page / 2, page + 1, page + page / 2}) {
            assertFails(
                    () -> driver.virtualMemory().create(byteSize, PhysicalMemory.onDevice(DEVICE)),
                    DriverCall.MEM_CREATE,
                    CudaResult.INVALID_VALUE);
        }
    }

    @Test
    void moreThanTheDeviceHasIsOutOfMemoryAndTheNextCallWorks() {
        long tooMuch = driver.devices().totalBytes(DEVICE) / page + 1;
        assertFails(() -> newHandle(tooMuch), DriverCall.MEM_CREATE, CudaResult.OUT_OF_MEMORY);
        assertThat(create(1)).isNotZero();
    }

    @Test
    void reservationsAreMultiplesOfTheGranularity() {
        for (long byteSize : new long[] {0, 1, page / 2, page + page / 2}) {
            assertFails(
                    () -> driver.virtualMemory().reserve(DEVICE, byteSize, 0, 0),
                    DriverCall.MEM_ADDRESS_RESERVE,
                    CudaResult.INVALID_VALUE);
        }
    }

    @Test
    void anAlignmentIsAPowerOfTwo() {
        assertFails(
                () -> driver.virtualMemory().reserve(DEVICE, page, 3 * MIB, 0),
                DriverCall.MEM_ADDRESS_RESERVE,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void reservationsAreAlignedAsAskedFor() {
        for (long alignment : new long[] {0, 4096, page, 1L << 30}) {
            long address = driver.virtualMemory().reserve(DEVICE, page, alignment, 0);
            assertThat(address % Math.max(alignment, page))
                    .as("alignment %s", alignment)
                    .isZero();
            driver.virtualMemory().freeReservation(DEVICE, address, page);
        }
    }

    @Test
    void aFreeAddressIsGivenWhereItIsWished() {
        long address = driver.virtualMemory().reserve(DEVICE, page, 0, 0);
        driver.virtualMemory().freeReservation(DEVICE, address, page);
        long again = driver.virtualMemory().reserve(DEVICE, page, 0, address);
        afterwards(() -> driver.virtualMemory().freeReservation(DEVICE, again, page));
        assertThat(again).isEqualTo(address);
    }

    @Test
    void aTakenAddressIsNotGivenAgain() {
        long address = reserve(1);
        long other = driver.virtualMemory().reserve(DEVICE, page, 0, address);
        afterwards(() -> driver.virtualMemory().freeReservation(DEVICE, other, page));
        assertThat(other).isNotEqualTo(address);
    }

    @Test
    void reservationsTakeNoMemoryAndMayExceedTheDevice() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.virtualMemory().reserve(DEVICE, 1L << 42, 0, 0);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
        driver.virtualMemory().freeReservation(DEVICE, address, 1L << 42);
    }

    @Test
    void aReservationIsFreedWholeAndOnce() {
        long address = driver.virtualMemory().reserve(DEVICE, 4 * page, 0, 0);
        assertReservationStays(address, 2 * page);
        assertReservationStays(address, 8 * page);
        assertReservationStays(address + page, page);
        driver.virtualMemory().freeReservation(DEVICE, address, 4 * page);
        assertReservationStays(address, 4 * page);
    }

    private void assertReservationStays(long address, long byteSize) {
        assertFails(
                () -> driver.virtualMemory().freeReservation(DEVICE, address, byteSize),
                DriverCall.MEM_ADDRESS_FREE,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aReservationWithAMappingCannotBeFreed() {
        long address = reserve(2);
        map(address, 1, create(1));
        assertReservationStays(address, 2 * page);
    }

    @Test
    void createdMemoryIsTakenFromTheDeviceUntilItIsReleased() {
        long before = driver.memory().freeBytes(DEVICE);
        long handle = newHandle(8);
        assertThat(before - driver.memory().freeBytes(DEVICE)).isEqualTo(8 * page);
        driver.virtualMemory().release(DEVICE, handle);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void releasedMemoryLivesAsLongAsItsMapping() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = reserve(4);
        long handle = newHandle(4);
        driver.virtualMemory().map(DEVICE, address, 4 * page, handle);
        open(address, 4);
        driver.virtualMemory().release(DEVICE, handle);
        long stream = stream();
        driver.copies().fillBytes(DEVICE, address, (byte) 7, 4 * page, stream);
        assertThat(host(4 * page).readFrom(address, stream).holdsOnly(7)).isTrue();
        assertThat(before - driver.memory().freeBytes(DEVICE)).isEqualTo(4 * page);
        driver.virtualMemory().unmap(DEVICE, address, 4 * page);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void unmappedMemoryLivesAsLongAsItsHandle() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = reserve(1);
        long handle = newHandle(1);
        driver.virtualMemory().map(DEVICE, address, page, handle);
        driver.virtualMemory().unmap(DEVICE, address, page);
        assertThat(before - driver.memory().freeBytes(DEVICE)).isEqualTo(page);
        driver.virtualMemory().release(DEVICE, handle);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void contentsStayWhileTheMemoryMoves() {
        long stream = stream();
        long handle = create(1);
        long first = reserve(1);
        long second = reserve(1);
        driver.virtualMemory().map(DEVICE, first, page, handle);
        open(first, 1);
        driver.copies().fillBytes(DEVICE, first, (byte) 9, page, stream);
        synchronize(stream);
        driver.virtualMemory().unmap(DEVICE, first, page);
        map(second, 1, handle);
        open(second, 1);
        assertThat(host(page).readFrom(second, stream).holdsOnly(9)).isTrue();
    }

    @Test
    void aRetainedHandleIsTheSameAndIsReleasedOnceMore() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = reserve(2);
        long handle = newHandle(2);
        driver.virtualMemory().map(DEVICE, address, 2 * page, handle);
        assertThat(driver.virtualMemory().retainHandle(DEVICE, address + page + 5))
                .isEqualTo(handle);
        driver.virtualMemory().unmap(DEVICE, address, 2 * page);
        driver.virtualMemory().release(DEVICE, handle);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before - 2 * page);
        driver.virtualMemory().release(DEVICE, handle);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void onlyMappedAddressesHaveAHandle() {
        long reserved = reserve(1);
        long linear = linear(4 * MIB);
        for (long address : new long[] {reserved, linear}) {
            assertFails(
                    () -> driver.virtualMemory().retainHandle(DEVICE, address),
                    DriverCall.MEM_RETAIN_ALLOCATION_HANDLE,
                    CudaResult.INVALID_VALUE);
        }
    }

    @Test
    void aHandleIsReleasedOnceForEachReference() {
        long address = reserve(1);
        long handle = newHandle(1);
        driver.virtualMemory().map(DEVICE, address, page, handle);
        driver.virtualMemory().release(DEVICE, handle);
        assertFails(
                () -> driver.virtualMemory().release(DEVICE, handle), DriverCall.MEM_RELEASE, CudaResult.INVALID_VALUE);
        driver.virtualMemory().unmap(DEVICE, address, page);
    }
}
