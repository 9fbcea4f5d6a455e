package io.cistern.loader.library;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What a library may return, asked of a driver that knows.
class PointerCheckTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(64 * MIB).build();
    private final PointerCheck check = new PointerCheck(gpu, "library x.so");
    private final long range = gpu.memory().allocate(0, 4 * MIB);

    @AfterEach
    void close() {
        gpu.close();
    }

    @Test
    void blocksSideBySideAreTaken() {
        assertThat(check.taken(range, MIB, 0)).isEqualTo(range);
        assertThat(check.taken(range + MIB, MIB, 0)).isEqualTo(range + MIB);
        check.freed(range);
        assertThat(check.taken(range, MIB, 0)).isEqualTo(range);
    }

    @Test
    void overlappingBlocksAreRefusedFromEitherSide() {
        check.taken(range + MIB, MIB, 0);

        assertBroken(range + MIB, MIB, 0, "where one of its live blocks already begins");
        assertBroken(range + MIB + 512, 512, 0, "which overlaps one of its live blocks");
        assertBroken(range, MIB + 256, 0, "which overlaps one of its live blocks");
        check.taken(range, MIB, 0);
        check.freed(range + MIB);
        check.taken(range + MIB + 512, 512, 0);
    }

    @Test
    void whatIsNoSuchMemoryIsRefused() {
        MemorySegment host = gpu.memory().allocateHost(0, 4096);

        assertBroken(0x1000, 512, 0, "which the driver does not know (INVALID_VALUE)");
        assertBroken(range, 512, 1, "which is memory of device 0");
        assertBroken(range + 3 * MIB, 2 * MIB, 0, "where the driver's allocation ends after 1048576 bytes");
        assertBroken(host.address(), 512, 0, "which is host memory");
        gpu.memory().freeHost(0, host);
    }

    @Test
    void whereTheDeviceHasNotGotAsMuchItIsOutOfMemory() {
        assertThatThrownBy(() -> check.taken(0x1000, 61 * MIB, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("the library seems to have missed that its own allocation failed");
    }

    private void assertBroken(long address, long byteSize, int device, String what) {
        assertThatThrownBy(() -> check.taken(address, byteSize, device))
                .isInstanceOf(AllocatorContractException.class)
                .hasMessage("library x.so returned 0x" + Long.toHexString(address) + " for " + byteSize
                        + " bytes on device " + device + ", " + what);
    }
}
