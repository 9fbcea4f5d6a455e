package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Two devices with peer access.
abstract class PeerContractTests extends VirtualMemoryContractTests {
    private static final int PEER = 1;

    PeerContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void needsTwoDevicesThatSeeEachOther() {
        assumeTrue(driver.devices().count() > 1, "needs two devices, there is one");
        assumeTrue(driver.peers().canAccess(DEVICE, PEER), "device 0 cannot reach device 1");
    }

    @Test
    void reachIsMutual() {
        boolean back = driver.peers().canAccess(/* device= */ PEER, /* peer= */ DEVICE);
        assertThat(back).isTrue();
    }

    @Test
    void accessIsEnabledOnceAndDisabledOnce() {
        driver.peers().enable(DEVICE, PEER);
        assertFails(
                () -> driver.peers().enable(DEVICE, PEER),
                DriverCall.CONTEXT_ENABLE_PEER_ACCESS,
                CudaResult.PEER_ACCESS_ALREADY_ENABLED);
        driver.peers().disable(DEVICE, PEER);
        assertFails(
                () -> driver.peers().disable(DEVICE, PEER),
                DriverCall.CONTEXT_DISABLE_PEER_ACCESS,
                CudaResult.PEER_ACCESS_NOT_ENABLED);
    }

    @Test
    void bytesGoFromDeviceToDevice() {
        long source = linear(DEVICE, MIB);
        long target = linear(PEER, MIB);
        long stream = stream();
        driver.copies().fillBytes(DEVICE, source, (byte) 6, MIB, stream);
        driver.copies().betweenDevices(PEER, target, DEVICE, source, MIB, stream);
        synchronize(stream);
        long peerStream = stream(PEER);
        HostBytes bytes = HostBytes.pinned(driver, PEER, MIB);
        afterwards(bytes::close);
        assertThat(bytes.readFrom(target, peerStream).holdsOnly(6)).isTrue();
    }

    @Test
    void devicesHaveMemoryOfTheirOwn() {
        long before = driver.memory().freeBytes(DEVICE);
        linear(PEER, 64 * MIB);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void aPoolIsOpenedToAPeer() {
        long pool = pool();
        assertThat(driver.pools().access(DEVICE, pool, PEER)).isEqualTo(AccessRights.NONE);
        driver.pools().setAccess(DEVICE, pool, PEER, AccessRights.READ_WRITE);
        assertThat(driver.pools().access(DEVICE, pool, PEER)).isEqualTo(AccessRights.READ_WRITE);
    }

    @Test
    void aMappingIsOpenedToAPeer() {
        long address = mapped(1);
        MemoryLocation peer = MemoryLocation.device(PEER);
        assertThat(driver.virtualMemory().access(DEVICE, address, peer)).isEqualTo(AccessRights.NONE);
        driver.virtualMemory().setAccess(DEVICE, address, page, peer, AccessRights.READ_WRITE);
        assertThat(driver.virtualMemory().access(DEVICE, address, peer)).isEqualTo(AccessRights.READ_WRITE);
        long stream = stream(PEER);
        driver.copies().fillBytes(PEER, address, (byte) 4, page, stream);
        driver.streams().synchronize(PEER, stream);
        assertThat(host(page).readFrom(address, stream()).holdsOnly(4)).isTrue();
    }

    @Test
    void aMappingIsOpenedToSeveralDevicesAtOnce() {
        long address = reserve(1);
        map(address, 1, create(1));
        List<MemoryLocation> both = List.of(MemoryLocation.device(DEVICE), MemoryLocation.device(PEER));
        driver.virtualMemory().setAccess(DEVICE, address, page, both, AccessRights.READ_WRITE);
        for (MemoryLocation each : both) {
            assertThat(driver.virtualMemory().access(DEVICE, address, each)).isEqualTo(AccessRights.READ_WRITE);
        }
    }

    @Test
    void anotherLibraryFindsTheContextOfTheDeviceThatWasEntered() {
        long before = driver.devices().enterContext(DEVICE);
        long own = driver.devices().enterContext(PEER);
        linear(DEVICE, MIB);
        driver.devices().leaveContext(PEER, own);
        driver.devices().leaveContext(DEVICE, before);
        long address = linear(PEER, MIB);
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.DEVICE_ORDINAL, address))
                .isEqualTo(PEER);
    }
}
