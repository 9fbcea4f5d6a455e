package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Calls on eight devices from one thread: each is made in the context of its device, and what was current before
/// is current again. The fake's primary contexts are 0xc0 to 0xc7.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class EightDevicesTests {
    private static final int DEVICES = 8;
    private static final long GRANULE = 2L << 20;

    private FakeLibrary library;
    private NativeDriver driver;

    @BeforeAll
    void compile(@TempDir Path folder) {
        library = new FakeLibrary(folder, "-DDEVICES=" + DEVICES);
        driver = library.open();
    }

    @AfterEach
    void recordNoMore() {
        library.record(false);
    }

    private void growth(int device) {
        long address = driver.virtualMemory().reserve(device, GRANULE, GRANULE, 0);
        long handle = driver.virtualMemory().create(GRANULE, PhysicalMemory.onDevice(device));
        driver.virtualMemory().map(device, address, GRANULE, handle);
        driver.virtualMemory()
                .setAccess(device, address, GRANULE, MemoryLocation.device(device), AccessRights.READ_WRITE);
        driver.events().destroy(device, driver.events().create(device));
        driver.devices().synchronize(device);
    }

    @ParameterizedTest
    @ValueSource(longs = {0xc0, 0xc5, 0xf0})
    void growingOnDeviceThreeLeavesAnotherOneCurrent(long current) {
        library.setContext(current);
        growth(3);
        assertThat(library.context()).isEqualTo(current);
    }

    @Test
    void onlyDevicesThatWereAskedForSomethingGetAContext() {
        try (NativeDriver fresh = library.open()) {
            fresh.capabilities();
            fresh.devices().name(2);
            fresh.memory().free(6, 0x10);
            for (int device = 0; device < DEVICES; device++) {
                assertThat(fresh.devices().isUsed(device))
                        .as("device %d", device)
                        .isEqualTo(device == 6);
            }
        }
    }

    @Test
    void eachCallIsMadeInTheContextOfItsDevice() {
        library.setContext(0xc0);
        for (int device = 0; device < DEVICES; device++) {
            driver.devices().primaryContext(device);
            library.record(true);
            growth(device);
            String own = "[c" + device + "]";
            assertThat(library.calls())
                    .filteredOn(call -> !call.contains("cuCtxGetCurrent") && !call.contains("cuCtxSetCurrent"))
                    .isNotEmpty()
                    .allMatch(call -> call.startsWith(own));
            assertThat(library.context()).isEqualTo(0xc0);
        }
    }
}
