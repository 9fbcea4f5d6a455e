package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/// Pools whose memory is not the device's, and pools that can be exported. Pools of host memory are tested if
/// the device says that it supports them.
abstract class PoolLocationContractTests extends DriverContractTests {
    private static final long BLOCK = 64 * MIB;

    PoolLocationContractTests(DriverContract suite) {
        super(suite);
    }

    private long poolOf(MemoryPoolProperties properties) {
        long pool = driver.pools().create(properties);
        afterwards(() -> driver.pools().destroy(DEVICE, pool));
        return pool;
    }

    private long hostPool() {
        assumeTrue(supports(DeviceAttribute.HOST_MEMORY_POOLS_SUPPORTED), "the device has no pools of host memory");
        return poolOf(new MemoryPoolProperties(MemoryLocation.host(), 0, 0));
    }

    private long nodePool() {
        assumeTrue(
                supports(DeviceAttribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED),
                "the device has no pools of host memory of one node");
        int node = Math.max(0, driver.devices().attribute(DEVICE, DeviceAttribute.HOST_NUMA_ID));
        return poolOf(new MemoryPoolProperties(MemoryLocation.hostNuma(node), 0, 0));
    }

    private boolean supports(DeviceAttribute attribute) {
        return driver.devices().attribute(DEVICE, attribute) != 0;
    }

    @Test
    void aDeviceHasNoAccessToTheHostsPoolUntilItIsGiven() {
        long pool = hostPool();
        assertThat(driver.pools().access(DEVICE, pool, DEVICE)).isEqualTo(AccessRights.NONE);
        driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ_WRITE);
        assertThat(driver.pools().access(DEVICE, pool, DEVICE)).isEqualTo(AccessRights.READ_WRITE);
    }

    @Test
    void aDeviceWritesAndReadsMemoryOfTheHostsPool() {
        useFrom(hostPool());
    }

    @Test
    void aDeviceWritesAndReadsMemoryOfANodesPool() {
        useFrom(nodePool());
    }

    private void useFrom(long pool) {
        long stream = stream();
        driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ_WRITE);
        long address = driver.pools().allocateFrom(DEVICE, pool, 64 * KIB, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 7, 64 * KIB, stream);
        assertThat(mismatches(address, 64 * KIB, 0x0707_0707, stream)).isZero();
        assertThat(mismatches(address, 64 * KIB, 0x0707_0708, stream)).isEqualTo(16 * KIB);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
    }

    /// Counts the words that differ from the expected one, with a kernel.
    private long mismatches(long address, long byteSize, int expected, long stream) {
        long counter = linear(8);
        try (MemoryKernels kernels = MemoryKernels.load(driver, DEVICE)) {
            driver.copies().fillBytes(DEVICE, counter, (byte) 0, 8, stream);
            kernels.countMismatches(address, byteSize / 4, expected, counter, stream);
            return host(8).readFrom(counter, stream).words()[0];
        }
    }

    @Test
    void copiesReachMemoryOfTheHostsPools() {
        for (long pool : new long[] {hostPool(), nodePool()}) {
            long stream = stream();
            driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ_WRITE);
            long address = driver.pools().allocateFrom(DEVICE, pool, 64 * KIB, stream);
            long onDevice = linear(64 * KIB);
            HostBytes bytes = host(64 * KIB);
            bytes.segment().fill((byte) 5);
            driver.copies().toDevice(DEVICE, address, bytes.segment(), 64 * KIB, stream);
            driver.copies().onDevice(DEVICE, onDevice, address, 64 * KIB, stream);
            driver.copies().fillBytes(DEVICE, address, (byte) 0, 64 * KIB, stream);
            assertThat(bytes.readFrom(address, stream).holdsOnly(0)).isTrue();
            driver.copies().onDevice(DEVICE, address, onDevice, 64 * KIB, stream);
            assertThat(bytes.readFrom(address, stream).holdsOnly(5)).isTrue();
            driver.copies().arrayToDevice(DEVICE, address, MemorySegment.ofArray(new byte[(int) (64 * KIB)]), stream);
            assertThat(bytes.readFrom(address, stream).holdsOnly(0)).isTrue();
            driver.pools().free(DEVICE, address, stream);
            synchronize(stream);
        }
    }

    @Test
    void aNodesPoolTakesNothingOfTheDevice() {
        long pool = nodePool();
        long stream = stream();
        driver.pools().setAttribute(DEVICE, pool, PoolAttribute.RELEASE_THRESHOLD, -1);
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.pools().allocateFrom(DEVICE, pool, BLOCK, stream);
        assertThat(driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT))
                .isGreaterThanOrEqualTo(BLOCK);
        assertThat(before - driver.memory().freeBytes(DEVICE)).isLessThan(BLOCK);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
    }

    @Test
    void theCallersOwnNodeIsNoPlaceForAPool() {
        MemoryLocation current = new MemoryLocation(MemoryLocation.Type.HOST_NUMA_CURRENT, 0);
        assertFails(
                () -> driver.pools().create(new MemoryPoolProperties(current, 0, 0)),
                DriverCall.MEM_POOL_CREATE,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aPoolForFileDescriptorsAllocatesLikeAnyOther() {
        int types = driver.devices().attribute(DEVICE, DeviceAttribute.MEMPOOL_SUPPORTED_HANDLE_TYPES);
        int fd = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        assumeTrue((types & fd) != 0, "no pools can be exported as file descriptors");
        long pool = poolOf(new MemoryPoolProperties(MemoryLocation.device(DEVICE), fd, 0));
        long stream = stream();
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 3, MIB, stream);
        assertThat(host(4096).readFrom(address, stream).holdsOnly(3)).isTrue();
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
    }
}
