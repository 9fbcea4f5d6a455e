package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.Test;

/// Stream-ordered allocation, and the lifetime of pools.
abstract class PoolAllocationContractTests extends DriverContractTests {
    PoolAllocationContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void zeroBytesAreAddressZeroWhichCanBeFreed() {
        long stream = stream();
        assertThat(driver.pools().allocate(DEVICE, 0, stream)).isZero();
        assertThat(driver.pools().allocateFrom(DEVICE, pool(), 0, stream)).isZero();
        driver.pools().free(DEVICE, 0, stream);
    }

    @Test
    void moreThanTheDeviceHasIsOutOfMemoryAndTheNextCallWorks() {
        long stream = stream();
        long pool = pool();
        long tooMuch = driver.devices().totalBytes(DEVICE) + 1;
        assertFails(
                () -> driver.pools().allocateFrom(DEVICE, pool, tooMuch, stream),
                DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
                CudaResult.OUT_OF_MEMORY);
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void anUnknownAddressCannotBeFreed() {
        long stream = stream();
        assertFails(
                () -> driver.pools().free(DEVICE, 0x1234_5600L, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aSecondFreeIsAnInvalidValue() {
        long stream = stream();
        long address = driver.pools().allocateFrom(DEVICE, pool(), MIB, stream);
        driver.pools().free(DEVICE, address, stream);
        assertFails(
                () -> driver.pools().free(DEVICE, address, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void anInteriorAddressCannotBeFreed() {
        long stream = stream();
        long address = driver.pools().allocateFrom(DEVICE, pool(), MIB, stream);
        assertFails(
                () -> driver.pools().free(DEVICE, address + 512, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void addressesAreAlignedTo256Bytes() {
        long stream = stream();
        long pool = pool();
        for (long byteSize = 1; byteSize <= 64 * MIB; byteSize = byteSize * 3 + 1) {
            long address = driver.pools().allocateFrom(DEVICE, pool, byteSize, stream);
            assertThat(address % 256).as("%s bytes", byteSize).isZero();
            driver.pools().free(DEVICE, address, stream);
        }
    }

    @Test
    void memoryIsUsableInStreamOrderBeforeTheStreamGetsThere() {
        StreamLatch latch = latch();
        long stream = stream();
        HostBytes bytes = host(64 * KIB);
        long pool = pool();
        latch.hold(stream);
        long address = driver.pools().allocateFrom(DEVICE, pool, 64 * KIB, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 12, 64 * KIB, stream);
        driver.copies().toHost(DEVICE, bytes.segment(), address, 64 * KIB, stream);
        driver.pools().free(DEVICE, address, stream);
        latch.release();
        synchronize(stream);
        assertThat(bytes.holdsOnly(12)).isTrue();
    }

    @Test
    void theSynchronousFreeTakesPoolMemoryThatThePoolStillCounts() {
        long stream = stream();
        long pool = pool();
        long address = driver.pools().allocateFrom(DEVICE, pool, 64 * MIB, stream);
        synchronize(stream);
        driver.memory().free(DEVICE, address);
        driver.devices().synchronize(DEVICE);
        assertThat(driver.pools().attribute(DEVICE, pool, PoolAttribute.USED_CURRENT))
                .isEqualTo(64 * MIB);
        assertFails(() -> driver.memory().free(DEVICE, address), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.pools().free(DEVICE, address, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void theStreamOrderedFreeTakesPlainMemoryToo() {
        long stream = stream();
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.memory().allocate(DEVICE, 64 * MIB);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
        assertFails(() -> driver.memory().free(DEVICE, address), DriverCall.MEM_FREE, CudaResult.INVALID_VALUE);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void memoryIsFreedOnAnyStream() {
        long pool = pool();
        long address = driver.pools().allocateFrom(DEVICE, pool, 64 * MIB, stream());
        long other = stream();
        driver.devices().synchronize(DEVICE);
        driver.pools().free(DEVICE, address, other);
        synchronize(other);
        assertThat(driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT))
                .isZero();
    }

    @Test
    void theDefaultPoolCannotBeDestroyed() {
        long pool = driver.pools().defaultPool(DEVICE);
        assertFails(() -> driver.pools().destroy(DEVICE, pool), DriverCall.MEM_POOL_DESTROY, CudaResult.INVALID_VALUE);
    }

    @Test
    void theDefaultPoolIsCurrentAgainWhenTheCurrentOneIsDestroyed() {
        long pool = driver.pools().create(MemoryPoolProperties.onDevice(DEVICE));
        driver.pools().setCurrentPool(DEVICE, pool);
        driver.pools().destroy(DEVICE, pool);
        assertThat(driver.pools().currentPool(DEVICE)).isEqualTo(driver.pools().defaultPool(DEVICE));
    }

    @Test
    void aDeviceAlwaysReachesItsOwnPool() {
        long pool = pool();
        assertThat(driver.pools().access(DEVICE, pool, DEVICE)).isEqualTo(AccessRights.READ_WRITE);
        driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ_WRITE);
        assertFails(
                () -> driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.NONE),
                DriverCall.MEM_POOL_SET_ACCESS,
                CudaResult.INVALID_DEVICE);
        assertFails(
                () -> driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ),
                DriverCall.MEM_POOL_SET_ACCESS,
                CudaResult.NOT_SUPPORTED);
    }

    @Test
    void memoryOutlivesItsDestroyedPool() {
        long stream = stream();
        long pool = driver.pools().create(MemoryPoolProperties.onDevice(DEVICE));
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.pools().allocateFrom(DEVICE, pool, 64 * MIB, stream);
        driver.pools().destroy(DEVICE, pool);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 4096, stream);
        assertThat(host(4096).readFrom(address, stream).holdsOnly(1)).isTrue();
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void theDefaultPoolIsCurrentAtFirst() {
        assertThat(driver.pools().defaultPool(DEVICE))
                .isNotZero()
                .isEqualTo(driver.pools().currentPool(DEVICE));
    }

    @Test
    void plainAllocationsComeFromTheCurrentPool() {
        long stream = stream();
        long pool = pool();
        driver.pools().setCurrentPool(DEVICE, pool);
        afterwards(() -> driver.pools().setCurrentPool(DEVICE, driver.pools().defaultPool(DEVICE)));
        assertThat(driver.pools().currentPool(DEVICE)).isEqualTo(pool);
        long address = driver.pools().allocate(DEVICE, MIB, stream);
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.MEMPOOL_HANDLE, address))
                .isEqualTo(pool);
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void aPoolReservesNoMoreThanItsMaximum() {
        long stream = stream();
        long pool = driver.pools()
                .create(new MemoryPoolProperties(io.cistern.cuda.MemoryLocation.device(DEVICE), 0, 64 * MIB));
        afterwards(() -> driver.pools().destroy(DEVICE, pool));
        assertFails(
                () -> driver.pools().allocateFrom(DEVICE, pool, 128 * MIB, stream),
                DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
                CudaResult.OUT_OF_MEMORY);
    }
}
