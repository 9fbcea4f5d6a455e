package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.cuda.LinearMemory.MemoryInfo;
import io.cistern.testkit.StreamLatch;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/// `cuMemAlloc`, `cuMemFree`, `cuMemGetInfo`, `cuMemGetAddressRange`.
abstract class LinearMemoryContractTests extends DriverContractTests {
    LinearMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void zeroBytesAreAnInvalidValue() {
        assertFails(() -> driver.memory().allocate(DEVICE, 0), DriverCall.MEM_ALLOC, CudaResult.INVALID_VALUE);
    }

    @Test
    void freeingAddressZeroDoesNothing() {
        long before = driver.memory().freeBytes(DEVICE);
        driver.memory().free(DEVICE, 0);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void aSecondFreeIsAnInvalidValue() {
        long address = driver.memory().allocate(DEVICE, 4 * MIB);
        driver.memory().free(DEVICE, address);
        assertFails(() -> driver.memory().free(DEVICE, address), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
    }

    @Test
    void anInteriorAddressCannotBeFreed() {
        long address = linear(4 * MIB);
        assertFails(() -> driver.memory().free(DEVICE, address + 256), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
    }

    @Test
    void anUnknownAddressCannotBeFreed() {
        assertFails(() -> driver.memory().free(DEVICE, 0x1234_5600L), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
    }

    @Test
    void moreThanTheDeviceHasIsOutOfMemoryAndTheNextCallWorks() {
        for (long byteSize : new long[] {driver.devices().totalBytes(DEVICE) + 1, 1L << 46, Long.MAX_VALUE}) {
            assertFails(
                    () -> driver.memory().allocate(DEVICE, byteSize), DriverCall.MEM_ALLOC, CudaResult.OUT_OF_MEMORY);
        }
        assertThat(linear(MIB)).isNotZero();
    }

    @Test
    void addressesAreAlignedTo256Bytes() {
        for (long byteSize = 1; byteSize <= 64 * MIB; byteSize = byteSize * 3 + 1) {
            assertThat(linear(byteSize) % 256).as("%s bytes", byteSize).isZero();
        }
    }

    @Test
    void liveRangesDoNotOverlap() {
        List<AddressRange> ranges = new ArrayList<>();
        for (int i = 1; i <= 200; i++) {
            long byteSize = i * 1337L;
            ranges.add(new AddressRange(linear(byteSize), byteSize));
        }
        ranges.sort(java.util.Comparator.comparingLong(AddressRange::address));
        for (int i = 1; i < ranges.size(); i++) {
            AddressRange before = ranges.get(i - 1);
            assertThat(before.address() + before.byteSize())
                    .isLessThanOrEqualTo(ranges.get(i).address());
        }
    }

    @Test
    void allocatedBytesAreMissingFromFreeBytesUntilTheyAreFreed() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.memory().allocate(DEVICE, 64 * MIB);
        assertThat(before - driver.memory().freeBytes(DEVICE)).isEqualTo(64 * MIB);
        driver.memory().free(DEVICE, address);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void smallAllocationsShareWhatTheDeviceGives() {
        long before = driver.memory().freeBytes(DEVICE);
        for (int i = 0; i < 1000; i++) {
            linear(512);
        }
        assertThat(before - driver.memory().freeBytes(DEVICE)).isBetween(512_000 - 2 * MIB, 2 * MIB);
    }

    @Test
    void infoGivesFreeAndTotalBytes() {
        MemoryInfo info = driver.memory().info(DEVICE);
        assertThat(info.freeBytes()).isPositive().isLessThanOrEqualTo(info.totalBytes());
        assertThat(info.totalBytes())
                .isPositive()
                .isLessThanOrEqualTo(driver.devices().totalBytes(DEVICE));
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(info.freeBytes());
    }

    @Test
    void theRangeOfAnyAddressInsideIsTheWholeAllocation() {
        long address = linear(6 * MIB);
        for (long inside : new long[] {address, address + 1, address + 3 * MIB, address + 6 * MIB - 1}) {
            assertThat(driver.memory().range(DEVICE, inside)).isEqualTo(new AddressRange(address, 6 * MIB));
        }
    }

    @Test
    void theRangeIsAsLongAsWasAskedFor() {
        long address = linear(1000);
        assertThat(driver.memory().range(DEVICE, address + 500)).isEqualTo(new AddressRange(address, 1000));
    }

    @Test
    void freedMemoryHasNoRange() {
        long address = driver.memory().allocate(DEVICE, 4 * MIB);
        driver.memory().free(DEVICE, address);
        assertFails(
                () -> driver.memory().range(DEVICE, address), DriverCall.MEM_GET_ADDRESS_RANGE, CudaResult.NOT_FOUND);
    }

    @Test
    void aFreeWaitsForTheWorkOfEveryStream() {
        StreamLatch latch = latch();
        long stream = stream();
        long address = driver.memory().allocate(DEVICE, 4 * MIB);
        latch.hold(stream);
        AtomicBoolean released = new AtomicBoolean();
        Thread letGo = Thread.ofPlatform().start(() -> {
            released.set(true);
            latch.release();
        });
        driver.memory().free(DEVICE, address);
        assertThat(released).isTrue();
        assertThat(driver.streams().isIdle(DEVICE, stream)).isTrue();
        join(letGo);
    }

    @Test
    void anAllocationDoesNotWait() {
        StreamLatch latch = latch();
        long stream = stream();
        latch.hold(stream);
        linear(64 * MIB);
        assertThat(driver.streams().isIdle(DEVICE, stream)).isFalse();
    }

    @Test
    void anUnknownAddressHasNoRange() {
        assertFails(
                () -> driver.memory().range(DEVICE, 0x1234_5600L),
                DriverCall.MEM_GET_ADDRESS_RANGE,
                CudaResult.NOT_FOUND);
    }
}
