package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageFit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// How large pages are, by what was live at most and by whether pages move.
class PageFinenessTest {
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
        return PageFineness.of(fit).pageBytes(peakMebibytes * MIB, moves, LARGEST) / MIB;
    }

    @Test
    void noPageIsLargerThanTheLargest() {
        for (PageFit each : PageFit.values()) {
            PageFineness fit = PageFineness.of(each);
            assertThat(fit.pageBytes(1L << 40, false, 20 * MIB)).isEqualTo(20 * MIB);
            assertThat(fit.pageBytes(0, false, 2 * MIB)).isEqualTo(2 * MIB);
            assertThat(fit.leastBytes(2 * MIB)).isEqualTo(2 * MIB);
        }
        assertThat(PageFineness.of(PageFit.USUAL).leastBytes(LARGEST)).isEqualTo(4 * MIB);
        assertThat(PageFineness.of(PageFit.TIGHT).leastBytes(LARGEST)).isEqualTo(2 * MIB);
    }

    @Test
    void aTightFitHasNoSlackUnlessItIsGiven() {
        assertThat(PagePolicy.usualSlack(PageFit.TIGHT)).isZero();
        assertThat(PagePolicy.usualSlack(PageFit.USUAL)).isEqualTo(PagePolicy.USUAL_SLACK);
    }
}
