package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.options.CheckLevel;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The sizes of plain segments, and which requests share them.
final class SegmentGrowthTests {
    private static final long KIB = 1L << 10;
    private static final long MIB = 1L << 20;
    private static final long STREAM = 0x1000;

    private static CachingAllocator open(RangeSource source, long alignment, boolean splits) {
        CachingOptions options = new CachingOptions(
                "test",
                false,
                null,
                PagePolicy.USUAL,
                alignment,
                splits,
                new ReserveLimit(Long.MAX_VALUE, 1, false),
                0,
                0,
                CheckLevel.OFF,
                true);
        return new TestContext(source).open(options);
    }

    private static CachingAllocator open(RangeSource source) {
        return open(source, CachingOptions.USUAL_ALIGNMENT, true);
    }

    @ParameterizedTest(name = "{0} bytes from a segment of {1} MiB, or of {2} MiB of its own")
    @CsvSource({
        "1, 2, 2",
        "1048576, 2, 2",
        "1048577, 20, 2",
        "3145728, 20, 4",
        "7466000, 16, 8",
        "10485248, 20, 10",
        "10485760, 10, 10",
        "10485761, 12, 12"
    })
    void aSegmentIsSharedUnlessBlocksAreLargeOrNotSplit(long byteSize, long shared, long whole) {
        TestRanges source = new TestRanges(64 * MIB);
        open(source).allocate(byteSize, 0, STREAM);
        assertThat(source.liveBytes()).isEqualTo(shared * MIB);
        TestRanges ofItsOwn = new TestRanges(64 * MIB);
        open(ofItsOwn, 256, false).allocate(byteSize, 0, STREAM);
        assertThat(ofItsOwn.liveBytes()).isEqualTo(whole * MIB);
    }

    @Test
    void aSourceWithoutRoomForASharedSegmentGivesASmallerOne() {
        TestRanges source = new TestRanges(4 * MIB);
        CachingAllocator caching = open(source);
        caching.allocate(3 * MIB, 0, STREAM);
        assertThat(source.liveBytes()).isEqualTo(4 * MIB);
        assertThatThrownBy(() -> caching.allocate(3 * MIB, 0, STREAM)).isInstanceOf(DeviceOutOfMemoryException.class);
    }

    /// Only a lack of memory can be less with a smaller segment.
    @Test
    void aSourceThatFailsIsNotAskedAgain() {
        int[] asked = {0};
        RangeSource failing = new RangeSource() {
            @Override
            public Segment acquire(long byteSize, long byteAlignment, int device) {
                asked[0]++;
                throw new CudaException(DriverCall.MEM_ALLOC, CudaResult.UNKNOWN.code(), "");
            }

            @Override
            public void release(Segment segment) {}
        };
        CachingAllocator caching = open(failing);
        assertThatThrownBy(() -> caching.allocate(3 * MIB, 0, STREAM)).isInstanceOf(CudaException.class);
        assertThat(asked[0]).isEqualTo(1);
    }

    /// The test's source aligns to 256 bytes only.
    @ParameterizedTest
    @CsvSource({"256, 20", "4096, 20", "2097152, 22"})
    void addressesAreAlignedWhateverTheSourceGives(long alignment, long mib) {
        TestRanges source = new TestRanges(64 * MIB);
        CachingAllocator caching = open(source, alignment, true);
        List<Long> blocks = List.of(
                caching.allocate(3 * MIB, 0, STREAM),
                caching.allocate(3 * MIB, 0, STREAM),
                caching.allocate(3 * MIB, 0, STREAM));
        assertThat(blocks).allMatch(block -> block % alignment == 0);
        assertThat(source.liveBytes()).isEqualTo(mib * MIB + (alignment == 4096 ? 4096 : 0));
        assertThat(caching.reservedBytes(0)).hasValue(source.liveBytes());
        caching.checkInvariants();
        assertThat(leftBytes(caching)).isEqualTo(source.liveBytes());
        blocks.forEach(block -> caching.free(block, 0, 0, STREAM));
        assertThat(leftBytes(caching)).isZero();
        assertThat(source.live).isEmpty();
        caching.checkInvariants();
    }

    private static long leftBytes(CachingAllocator caching) {
        return caching.trim(0, 0, TrimMode.WITHOUT_WAITING).orElseThrow().left().stream()
                .mapToLong(TrimResult.Left::byteSize)
                .sum();
    }

    /// A small block in it would keep it from every other use.
    @ParameterizedTest(name = "of {0} MiB, for {1} MiB")
    @CsvSource({"4096, 3640, false", "4096, 3641, true", "4094, 1, true", "4096, 1, false"})
    void aLargeSegmentServesOnlyRequestsThatLeaveLittle(long largeMib, long mib, boolean serves) {
        TestRanges source = new TestRanges(TestContext.TOTAL_BYTES);
        CachingAllocator caching = open(source);
        caching.free(caching.allocate(largeMib * MIB, 0, STREAM), 0, 0, STREAM);
        caching.allocate(mib * MIB, 0, STREAM);
        assertThat(source.live).hasSize(serves ? 1 : 2);
    }

    @ParameterizedTest(name = "of {0} MiB, for {1} MiB")
    @CsvSource({"18, 1, true", "20, 1, false", "20, 17, false", "20, 18, true"})
    void anUncutSegmentIsKeptForRequestsOfAboutItsSize(long largeMib, long mib, boolean serves) {
        TestRanges source = new TestRanges(64 * MIB);
        CachingAllocator caching = open(source, 256, false);
        caching.free(caching.allocate(largeMib * MIB, 0, STREAM), 0, 0, STREAM);
        caching.allocate(mib * MIB, 0, STREAM);
        assertThat(source.live).hasSize(serves ? 1 : 2);
    }

    @Test
    void aBlockThatWaitedServesBeforeTheSegmentGrows() {
        TestRanges source = new TestRanges(64 * MIB);
        CachingAllocator caching = open(source);
        long block = caching.allocate(12 * MIB, 0, STREAM);
        caching.free(block, 0, 0, STREAM + KIB);
        assertThat(caching.allocate(12 * MIB, 0, STREAM)).isEqualTo(block);
        assertThat(source.live).hasSize(1);
    }

    @Test
    void aSegmentGoesBackOnceAllItsBlocksAreFree() {
        TestRanges source = new TestRanges(64 * MIB);
        CachingAllocator caching = open(source);
        long one = caching.allocate(3 * MIB, 0, STREAM);
        long two = caching.allocate(3 * MIB, 0, STREAM);
        caching.free(one, 0, 0, STREAM);
        assertThat(caching.trim(0, 0)).isZero();
        caching.free(two, 0, 0, STREAM);
        assertThat(caching.trim(0, 0, TrimMode.WITHOUT_WAITING).orElseThrow().returnedBytes())
                .isEqualTo(20 * MIB);
        assertThat(source.live).isEmpty();
        assertThat(caching.reservedBytes(0)).hasValue(0);
    }
}
