package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// How large pages are, by what was live at most and by whether pages move.
class PageFitTest {
    private static final long MIB = 1L << 20;
    private static final long LARGEST = PagePolicy.LARGEST_BYTES;

    @ParameterizedTest(name = "{0} MiB live")
    @CsvSource({
        "0,      4,   4",
        "32,     4,   4",
        "48,     6,   6",
        "64,     8,   8",
        "512,    8,   8",
        "1024,   16,  8",
        "16384,  256, 128",
        "32768,  512, 256",
        "131072, 512, 512",
    })
    void usualPagesAreASixtyFourthOfThePeakAndHalfOfThatOncePagesMove(long peak, long atFirst, long moving) {
        assertThat(mebibytes(PageFit.USUAL, peak, false)).isEqualTo(atFirst);
        assertThat(mebibytes(PageFit.USUAL, peak, true)).isEqualTo(moving);
    }

    @ParameterizedTest(name = "{0} MiB live")
    @CsvSource({"0, 2", "2048, 2", "4096, 4", "131072, 128", "1048576, 512"})
    void tightPagesAreAThousandthOfThePeakWhetherTheyMoveOrNot(long peak, long size) {
        assertThat(mebibytes(PageFit.TIGHT, peak, false)).isEqualTo(size);
        assertThat(mebibytes(PageFit.TIGHT, peak, true)).isEqualTo(size);
    }

    private static long mebibytes(PageFit fit, long peakMebibytes, boolean moves) {
        return fit.pageBytes(peakMebibytes * MIB, moves, LARGEST) / MIB;
    }

    @Test
    void noPageIsLargerThanTheLargest() {
        for (PageFit fit : PageFit.values()) {
            assertThat(fit.pageBytes(1L << 40, false, 20 * MIB)).isEqualTo(20 * MIB);
            assertThat(fit.pageBytes(0, false, 2 * MIB)).isEqualTo(2 * MIB);
            assertThat(fit.leastBytes(2 * MIB)).isEqualTo(2 * MIB);
        }
        assertThat(PageFit.USUAL.leastBytes(LARGEST)).isEqualTo(4 * MIB);
        assertThat(PageFit.TIGHT.leastBytes(LARGEST)).isEqualTo(2 * MIB);
    }

    @Test
    void aTightFitHasNoSlackUnlessItIsGiven() {
        assertThat(PageFit.TIGHT.usualSlack()).isZero();
        assertThat(PageFit.USUAL.usualSlack()).isEqualTo(PagePolicy.USUAL_SLACK);
    }
}
