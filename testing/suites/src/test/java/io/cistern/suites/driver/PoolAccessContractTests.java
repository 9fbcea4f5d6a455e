package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Access of a device to another device's pool: rights belong to pairs of pool and device. The tests use fills,
/// which the driver checks when they are enqueued; kernels would break the device's context.
abstract class PoolAccessContractTests extends DriverContractTests {
    PoolAccessContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void needsTwoDevicesThatSeeEachOther() {
        assumeTrue(driver.devices().count() > 1, "needs two devices, there is one");
        assumeTrue(
                driver.peers().canAccess(0, 1) && driver.peers().canAccess(1, 0), "the devices don't see each other");
    }

    private long poolOn(int device) {
        long pool = driver.pools().create(MemoryPoolProperties.onDevice(device));
        afterwards(() -> driver.pools().destroy(device, pool));
        return pool;
    }

    private long allocate(int device, long pool) {
        long stream = stream(device);
        long address = driver.pools().allocateFrom(device, pool, MIB, stream);
        driver.streams().synchronize(device, stream);
        afterwards(() -> {
            driver.pools().free(device, address, stream);
            driver.streams().synchronize(device, stream);
        });
        return address;
    }

    /// Fills memory on a device and waits for it.
    private void fill(int device, long address, int value) {
        long stream = stream(device);
        driver.copies().fillBytes(device, address, (byte) value, MIB, stream);
        driver.streams().synchronize(device, stream);
    }

    private void assertRefused(int device, long address) {
        assertFails(
                () -> fill(device, address, 1),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.INVALID_VALUE,
                CudaResult.PEER_ACCESS_NOT_ENABLED);
    }

    private boolean holds(int device, long address, int value) {
        HostBytes bytes = HostBytes.pinned(driver, device, MIB);
        afterwards(bytes::close);
        return bytes.readFrom(address, stream(device)).holdsOnly(value);
    }

    @ParameterizedTest
    @CsvSource({"0,1", "1,0"})
    void accessIsRefusedGrantedUsedAndRevoked(int home, int peer) {
        long pool = poolOn(home);
        long address = allocate(home, pool);
        assertThat(driver.pools().access(home, pool, home)).isEqualTo(AccessRights.READ_WRITE);
        assertThat(driver.pools().access(home, pool, peer)).isEqualTo(AccessRights.NONE);
        assertRefused(peer, address);
        driver.pools().setAccess(home, pool, peer, AccessRights.READ_WRITE);
        assertThat(driver.pools().access(home, pool, peer)).isEqualTo(AccessRights.READ_WRITE);
        fill(peer, address, 7);
        assertThat(holds(home, address, 7)).isTrue();
        driver.pools().setAccess(home, pool, peer, AccessRights.NONE);
        assertThat(driver.pools().access(home, pool, peer)).isEqualTo(AccessRights.NONE);
        assertRefused(peer, address);
        fill(home, address, 8);
        assertThat(holds(home, address, 8)).isTrue();
    }

    @Test
    void rightsAreForAllThatAPoolHasAndWillHave() {
        long pool = poolOn(0);
        long before = allocate(0, pool);
        driver.pools().setAccess(0, pool, 1, AccessRights.READ_WRITE);
        long stream = stream(0);
        long after = driver.pools().allocateFrom(0, pool, 100 * MIB, stream);
        driver.streams().synchronize(0, stream);
        fill(1, before, 3);
        fill(1, after + 99 * MIB, 4);
        assertThat(holds(0, before, 3)).isTrue();
        assertThat(holds(0, after + 99 * MIB, 4)).isTrue();
        driver.pools().free(0, after, stream);
    }

    @Test
    void rightsOfOnePoolAreNotThoseOfAnother() {
        long open = poolOn(0);
        long closed = poolOn(0);
        driver.pools().setAccess(0, open, 1, AccessRights.READ_WRITE);
        long inClosed = allocate(0, closed);
        fill(1, allocate(0, open), 5);
        assertThat(driver.pools().access(0, closed, 1)).isEqualTo(AccessRights.NONE);
        assertRefused(1, inClosed);
    }

    /// The call applies to memory of `cuMemAlloc`.
    @Test
    void enablingThePeerOpensLinearMemoryAndNoPool() {
        long pool = poolOn(0);
        long pooled = allocate(0, pool);
        long linear = linear(0, MIB);
        enablePeer();
        fill(1, linear, 6);
        assertThat(holds(0, linear, 6)).isTrue();
        assertThat(driver.pools().access(0, pool, 1)).isEqualTo(AccessRights.NONE);
        assertRefused(1, pooled);
    }

    private void enablePeer() {
        driver.peers().enable(/* device= */ 1, /* peer= */ 0);
        afterwards(() -> driver.peers().disable(/* device= */ 1, /* peer= */ 0));
    }

    @Test
    void thePoolsOwnDeviceKeepsItsAccess() {
        long pool = poolOn(0);
        assertFails(
                () -> driver.pools().setAccess(0, pool, 0, AccessRights.NONE),
                DriverCall.MEM_POOL_SET_ACCESS,
                CudaResult.INVALID_DEVICE,
                CudaResult.INVALID_VALUE);
        assertThat(driver.pools().access(0, pool, 0)).isEqualTo(AccessRights.READ_WRITE);
    }

    @Test
    void aCopyBetweenDevicesNeedsNoAccess() {
        long source = allocate(0, poolOn(0));
        long target = allocate(1, poolOn(1));
        fill(0, source, 9);
        long stream = stream(0);
        driver.copies().betweenDevices(1, target, 0, source, MIB, stream);
        driver.streams().synchronize(0, stream);
        assertThat(holds(1, target, 9)).isTrue();
    }
}
