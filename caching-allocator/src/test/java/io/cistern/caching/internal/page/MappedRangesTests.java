package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.GpuContext.GpuPages;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Segments of pages: each is whole or not there, whatever the driver refuses.
final class MappedRangesTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY = 64 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final Books books = new Books();
    private final List<Segment> refused = new ArrayList<>();
    private final MappedRanges ranges = new MappedRanges(gpu.virtualMemory(), books, refused::add);

    /// Hears of each mapping, and may need it where it is.
    private final class Books implements PageSource {
        final Map<Long, Long> mapped = new HashMap<>();
        private final PageSource pages = new GpuPages(gpu);
        boolean keeps;
        boolean refuses;

        @Override
        public PageTraits traits(int device) {
            return pages.traits(device);
        }

        @Override
        public long create(long byteSize, int device) {
            return pages.create(byteSize, device);
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            pages.release(handle, byteSize, device);
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            if (refuses) {
                throw new IllegalStateException("in a test");
            }
            mapped.put(address, byteSize);
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            return !keeps && mapped.remove(address, byteSize);
        }
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aSegmentIsUsableAndInWholePages() {
        Segment segment = ranges.acquire(3 * MIB, 256, 0);
        assertThat(segment.byteSize()).isEqualTo(4 * MIB);
        assertThat(books.mapped).containsOnly(Map.entry(segment.address(), 4 * MIB));
        long stream = gpu.streams().create(0);
        gpu.copies().fillBytes(0, segment.address(), (byte) 1, 4 * MIB, stream);
        gpu.devices().synchronize(0);
        ranges.release(segment);
        assertThat(books.mapped).isEmpty();
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"MEM_ADDRESS_RESERVE", "MEM_CREATE", "MEM_MAP", "MEM_SET_ACCESS"})
    void nothingIsLeftOfASegmentThatTheDriverRefused(DriverCall refused) {
        gpu.faults().failOn(refused, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> ranges.acquire(3 * MIB, 256, 0)).isInstanceOf(CudaException.class);
        assertNothingLeft(refused == DriverCall.MEM_ADDRESS_RESERVE ? 0 : 1);
        ranges.release(ranges.acquire(3 * MIB, 256, 0));
    }

    @Test
    void nothingIsLeftOfASegmentThatTheSourceRefused() {
        books.refuses = true;
        assertThatThrownBy(() -> ranges.acquire(3 * MIB, 256, 0)).isInstanceOf(IllegalStateException.class);
        assertNothingLeft(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"MEM_MAP", "MEM_SET_ACCESS"})
    void whatTheDriverDoesNotUndoIsReleasedLater(DriverCall failing) {
        gpu.faults().failOn(failing, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> ranges.acquire(3 * MIB, 256, 0)).hasMessageContaining(failing.symbol());
        assertThat(refused).hasSize(1);
        assertThat(books.mapped).as("told").isEmpty();
        Segment left = refused.getFirst();
        if (failing == DriverCall.MEM_SET_ACCESS) {
            assertThatThrownBy(() -> ranges.release(left)).hasMessageContaining("cuMemUnmap");
        }
        ranges.release(left);
        assertThat(books.mapped).as("told").isEmpty();
        assertThatThrownBy(() -> ranges.release(left)).isInstanceOf(IllegalArgumentException.class);
    }

    private void assertNothingLeft(int reservations) {
        assertThat(books.mapped).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE)).isEqualTo(reservations);
    }

    @Test
    void aSegmentThatTheDriverKeepsIsUsableAndKnown() {
        Segment segment = ranges.acquire(4 * MIB, 256, 0);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> ranges.tryRelease(segment)).isInstanceOf(CudaException.class);
        assertThat(books.mapped).as("told again").containsKey(segment.address());
        assertThat(ranges.tryRelease(segment)).isTrue();
    }

    /// Its handle has gone then, and is not released twice.
    @Test
    void aSegmentThatIsNotUnmappedGoesLater() {
        Segment segment = ranges.acquire(4 * MIB, 256, 0);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> ranges.tryRelease(segment)).isInstanceOf(CudaException.class);
        assertThat(ranges.tryRelease(segment)).isTrue();
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isEqualTo(1);
    }

    @Test
    void aDeadContextIsNotTold() {
        Segment segment = ranges.acquire(4 * MIB, 256, 0);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.LAUNCH_FAILED);
        assertThatThrownBy(() -> ranges.tryRelease(segment)).isInstanceOf(CudaException.class);
        assertThat(books.mapped).isEmpty();
        books.mapped.put(segment.address(), segment.byteSize());
        assertThat(ranges.tryRelease(segment)).isTrue();
    }

    @Test
    void aSegmentThatItsSourceNeedsStays() {
        Segment segment = ranges.acquire(4 * MIB, 256, 0);
        books.keeps = true;
        assertThat(ranges.tryRelease(segment)).isFalse();
        assertThatThrownBy(() -> ranges.release(segment)).isInstanceOf(IllegalStateException.class);
        books.keeps = false;
        ranges.release(segment);
    }

    @Test
    void addressesThatTheDriverKeepsAreNoFailure() {
        Segment segment = ranges.acquire(4 * MIB, 256, 0);
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_FREE, 0, 1, CudaResult.UNKNOWN);
        assertThat(ranges.tryRelease(segment)).isTrue();
    }
}
