package io.cistern.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// Ranges with and without gaps, compared byte by byte.
class RangeTests {
    private final Random random = new Random(5);

    private static BitSet bytes(long from, long pitch, long width, long rows, long end) {
        BitSet bytes = new BitSet();
        for (int row = 0; row < rows; row++) {
            bytes.set((int) (from + row * pitch), (int) (from + row * pitch + width));
        }
        bytes.clear((int) end, Math.max((int) end, bytes.length()));
        return bytes;
    }

    @Test
    void rowsOverlapAndCoverAsTheirBytesDo() {
        int covered = 0;
        for (int i = 0; i < 100_000; i++) {
            long[] one = shape();
            long[] other = random.nextBoolean() ? shape() : new long[] {one[0] + random.nextInt(4), one[1], 2, 2, 99};
            BitSet mine = bytes(one[0], one[1], one[2], one[3], one[4]);
            BitSet others = bytes(other[0], other[1], other[2], other[3], other[4]);
            Range range = range(one);
            Range second = range(other);
            assertThat(range.conflictsWith(second)).as("%s %s", range, second).isEqualTo(mine.intersects(others));
            if (range.covers(second) && second.byteSize() > 0) {
                covered++;
                others.andNot(mine);
                assertThat(others.isEmpty()).as("%s %s", range, second).isTrue();
            }
        }
        assertThat(covered).isGreaterThan(1000);
    }

    /// Where it begins, pitch, width, rows and where it is cut off.
    private long[] shape() {
        long width = random.nextInt(6);
        return new long[] {random.nextInt(20), width + random.nextInt(6), width, random.nextInt(5), 25};
    }

    private static Range range(long... shape) {
        return Range.rows(shape[0], shape[1], shape[2], shape[3], true).before(shape[4]);
    }
}
