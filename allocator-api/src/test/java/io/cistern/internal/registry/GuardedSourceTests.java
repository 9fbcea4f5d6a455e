package io.cistern.internal.registry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.MemoryLocation;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GuardedSourceTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(64 * MIB).build();
    private final DeviceReserves reserves = new DeviceReserves(gpu, 2);
    private final List<String> log = new ArrayList<>();
    private final Ranges ranges = new Ranges();
    private final Pages pages = new Pages();
    private final RangeSource guarded = (RangeSource) GuardedSource.of("test", ranges, reserves);
    private final PageSource guardedPages = (PageSource) GuardedSource.of("test", pages, reserves);

    /// Returns the next segment, whatever is asked for.
    private final class Ranges implements RangeSource {
        private Segment next = new Segment(0, 0, 0);
        private boolean releases;
        private boolean fails;

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            log.add("acquire");
            return next;
        }

        @Override
        public void release(Segment segment) {
            log.add("release " + segment.byteSize());
            if (fails) {
                throw new IllegalStateException("not mine");
            }
        }

        @Override
        public boolean tryRelease(Segment segment) {
            return releases;
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return Optional.of(type.cast("ranges"));
        }

        @Override
        public void close() {
            log.add("close");
        }
    }

    /// Pages in the memory of device 0, and on the host for device 1.
    private final class Pages implements PageSource {
        private boolean unmaps;

        @Override
        public PageTraits traits(int device) {
            return new PageTraits(MIB, device == 0 ? "device" : "host", "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            log.add("create " + byteSize + " on " + device);
            return 7;
        }

        @Override
        public List<MemoryLocation> accessors(int device) {
            return List.of(MemoryLocation.device(1 - device));
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            log.add("mapped " + address + " " + byteSize + " " + handle + " on " + device);
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            return unmaps;
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            log.add("release " + handle + " " + byteSize + " on " + device);
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return Optional.of(type.cast("pages"));
        }

        @Override
        public void close() {
            log.add("close");
        }
    }

    @AfterEach
    void close() {
        gpu.close();
    }

    @ParameterizedTest
    @CsvSource({
        "257, 4096, 1, which is not a multiple of 256",
        "0, 4096, 1, which is not between 256 and 2^49",
        "-256, 4096, 1, which is not between 256 and 2^49",
        "562949953417472, 4096, 1, which is not between 256 and 2^49",
        "1024, 4095, 1, where only 4095 bytes begin",
        "1024, 4096, 0, which is a range on device 0"
    })
    void aRangeThatWasNotAskedForGoesBack(long address, long byteSize, int device, String fault) {
        ranges.next = new Segment(address, byteSize, device);
        ranges.fails = true;
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> guarded.acquire(4096, 256, 1))
                .withMessage("segment source test returned 0x" + Long.toHexString(address)
                        + " for 4096 bytes on device 1, " + fault)
                .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
        assertThat(log).containsExactly("acquire", "release " + byteSize);
    }

    @Test
    void noRangeAtAllNamesTheSource() {
        ranges.next = null;
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> guarded.acquire(4096, 256, 1))
                .withMessage("segment source test returned null for 4096 bytes on device 1");
    }

    @ParameterizedTest
    @CsvSource({"256, 4096", "256, 8192", "562949953417216, 4096"})
    void aRangeWithinTheAddressesOfDevicesServes(long address, long byteSize) {
        ranges.next = new Segment(address, byteSize, 1);
        assertThat(guarded.acquire(4096, 256, 1)).isSameAs(ranges.next);
        assertThat(log).containsExactly("acquire");
    }

    @Test
    void nothingComesOutOfAReserve() {
        reserves.set(0, gpu.memory().freeBytes(0) - MIB);
        reserves.set(1, gpu.memory().freeBytes(1));
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> guarded.acquire(2 * MIB, 256, 0));
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> guardedPages.create(2 * MIB, 0));
        assertThat(log).isEmpty();
        assertThat(guardedPages.create(MIB, 0)).isEqualTo(7);
        assertThat(guardedPages.create(2 * MIB, 1)).as("pages of the host").isEqualTo(7);
        assertThat(log).containsExactly("create 1048576 on 0", "create 2097152 on 1");
    }

    /// A source that refuses to release or to unmap keeps the memory where it is.
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theSourceDecidesTheRest(boolean gives) {
        Segment segment = new Segment(1024, 4096, 1);
        ranges.releases = gives;
        pages.unmaps = gives;
        assertThat(guarded.tryRelease(segment)).isEqualTo(gives);
        assertThat(guarded.extension(String.class)).contains("ranges");
        guarded.release(segment);
        guarded.close();
        assertThat(guardedPages.traits(1)).isEqualTo(pages.traits(1));
        assertThat(guardedPages.accessors(1)).containsExactly(MemoryLocation.device(0));
        assertThat(guardedPages.unmapping(1, 1024, 4096)).isEqualTo(gives);
        assertThat(guardedPages.extension(String.class)).contains("pages");
        guardedPages.mapped(1, 1024, 4096, 7);
        guardedPages.release(7, 4096, 1);
        guardedPages.close();
        assertThat(log)
                .containsExactly("release 4096", "close", "mapped 1024 4096 7 on 1", "release 7 4096 on 1", "close");
    }
}
