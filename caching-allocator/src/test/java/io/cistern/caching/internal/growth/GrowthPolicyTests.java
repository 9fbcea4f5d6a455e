package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// When a page is created although others are idle, and how large it is.
class GrowthPolicyTests {
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final long SLOT = 2 * MIB;

    private static GrowthPolicy policy(long fixedBytes, PageFit fit) {
        return new GrowthPolicy(
                new PagePolicy(fixedBytes, fit, PageReuse.WAIT, false, 0), SLOT, 64 * GIB, Long.MAX_VALUE);
    }

    private static GrowthPolicy policy(PageFit fit) {
        return policy(0, fit);
    }

    @Test
    void asMuchAsWasEverLiveIsNeeded() {
        GrowthPolicy growthPolicy = policy(PageFit.USUAL);
        growthPolicy.setPeak(100 * MIB, false, 0);
        growthPolicy.setPeak(60 * MIB, false, 100 * MIB);
        assertThat(growthPolicy.creates(100 * MIB - 1)).isTrue();
        assertThat(growthPolicy.creates(100 * MIB)).isFalse();
    }

    @Test
    void whatWasNeededBeforeMemoryWentBackIsNeededNoMore() {
        GrowthPolicy growthPolicy = policy(PageFit.USUAL);
        growthPolicy.setPeak(10 * GIB, false, 0);
        growthPolicy.setPeak(2 * GIB, false, 10 * GIB);
        assertThat(growthPolicy.pageBytes(false, 2 * GIB)).isEqualTo(96 * MIB);
        growthPolicy.setPeak(768 * MIB, false, 700 * MIB);
        assertThat(growthPolicy.creates(768 * MIB)).isFalse();
        assertThat(growthPolicy.pageBytes(false, 768 * MIB)).isEqualTo(8 * MIB);
    }

    @Test
    void whatGoesBackAboveThePeakChangesNothing() {
        GrowthPolicy growthPolicy = policy(PageFit.USUAL);
        growthPolicy.setPeak(768 * MIB, false, 800 * MIB);
        growthPolicy.setPeak(4 * MIB, false, 780 * MIB);
        assertThat(growthPolicy.pageBytes(false, 768 * MIB)).isEqualTo(8 * MIB);
    }

    @Test
    void aProgramWhosePagesMoveWithoutEndGetsMore() {
        GrowthPolicy growthPolicy = new GrowthPolicy(
                new PagePolicy(0, PageFit.USUAL, PageReuse.ADAPTIVE, false, 0), SLOT, 64 * GIB, Long.MAX_VALUE);
        growthPolicy.setPeak(GIB, true, GIB);
        growthPolicy.moved(32 * GIB);
        assertThat(growthPolicy.creates(GIB)).as("each page moved 32 times").isFalse();
        growthPolicy.moved(SLOT);
        assertThat(growthPolicy.creates(GIB)).isTrue();
        growthPolicy.moved(99 * GIB);
        assertThat(growthPolicy.creates(2 * GIB)).as("twice the peak").isFalse();
        growthPolicy.setPeak(GIB, true, GIB - SLOT);
        assertThat(growthPolicy.creates(GIB)).as("after memory went back").isFalse();
    }

    @Test
    void aThousandthOfTheDeviceIsLittle() {
        GrowthPolicy growthPolicy = policy(PageFit.USUAL);
        growthPolicy.setPeak(4 * MIB, false, 0);
        assertThat(growthPolicy.creates(64 * MIB - 1)).isTrue();
        assertThat(growthPolicy.creates(64 * MIB)).isFalse();
    }

    @Test
    void withTightPagesNothingIsLittle() {
        GrowthPolicy growthPolicy = policy(PageFit.TIGHT);
        growthPolicy.setPeak(4 * MIB, false, 0);
        assertThat(growthPolicy.creates(4 * MIB)).isFalse();
    }

    @ParameterizedTest
    @CsvSource({
        "USUAL, 1, 2",
        "USUAL, 383, 2",
        "USUAL, 384, 4",
        "USUAL, 575, 4",
        "USUAL, 576, 6",
        "USUAL, 768, 8",
        "USUAL, 17000, 128",
        "USUAL, 18432, 192",
        "USUAL, 100000, 512",
        "TIGHT, 1024, 2",
        "TIGHT, 4096, 4",
        "TIGHT, 6144, 6",
        "TIGHT, 17000, 16",
    })
    void aPageForLargeBlocksIsAtMostAShareOfThePeak(PageFit fit, long peakMib, long pageMib) {
        GrowthPolicy growthPolicy = policy(fit);
        growthPolicy.setPeak(peakMib * MIB, false, 0);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(pageMib * MIB);
        assertThat(growthPolicy.pageBytes(true, 0)).as("for small blocks").isEqualTo(SLOT);
    }

    @Test
    void pagesAreHalfAsLargeWhileSeveralStreamsHaveLargeBlocks() {
        GrowthPolicy growthPolicy = policy(PageFit.USUAL);
        growthPolicy.setPeak(768 * MIB, true, 0);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(4 * MIB);
        growthPolicy.setPeak(0, false, 0);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(8 * MIB);
    }

    @Test
    void aFixedSizeIsThatOfEveryPage() {
        GrowthPolicy growthPolicy = policy(3 * MIB, PageFit.USUAL);
        growthPolicy.setPeak(17 * GIB, false, 0);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(4 * MIB);
        assertThat(growthPolicy.pageBytes(true, 0)).isEqualTo(4 * MIB);
        assertThat(growthPolicy.unit).isEqualTo(4 * MIB);
    }

    private static GrowthPolicy adaptive(long deviceBytes, long capBytes) {
        return new GrowthPolicy(
                new PagePolicy(0, PageFit.USUAL, PageReuse.ADAPTIVE, false, 0), SLOT, deviceBytes, capBytes);
    }

    @Test
    void anEighthAboveThePeakSavesAWait() {
        GrowthPolicy growthPolicy = adaptive(64 * GIB, Long.MAX_VALUE);
        growthPolicy.setPeak(GIB, false, 0);
        assertThat(growthPolicy.hasPlenty(GIB + 128 * MIB - 1)).isTrue();
        assertThat(growthPolicy.hasPlenty(GIB + 128 * MIB)).isFalse();
    }

    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource({"WAIT, USUAL", "NEVER, USUAL", "ADAPTIVE, TIGHT"})
    void onlyAdaptiveReuseTakesMoreThanThePeak(PageReuse reuse, PageFit fit) {
        GrowthPolicy growthPolicy =
                new GrowthPolicy(new PagePolicy(0, fit, reuse, false, 0), SLOT, 64 * GIB, Long.MAX_VALUE);
        growthPolicy.setPeak(GIB, false, 0);
        assertThat(growthPolicy.hasPlenty(GIB)).isFalse();
    }

    /// A sixteenth of what may be had: of the device, of the cap, or of what others leave.
    @Test
    void moreThanThePeakIsNeverMuchOfTheMemory() {
        GrowthPolicy capped = adaptive(64 * GIB, 16 * GIB);
        capped.setPeak(2 * GIB, false, 0);
        assertThat(capped.hasPlenty(GIB - 1)).isTrue();
        assertThat(capped.hasPlenty(GIB)).isFalse();
        GrowthPolicy growthPolicy = adaptive(64 * GIB, Long.MAX_VALUE);
        growthPolicy.setPeak(8 * GIB, false, 0);
        assertThat(growthPolicy.hasPlenty(4 * GIB - 1)).isTrue();
        assertThat(growthPolicy.hasPlenty(4 * GIB)).isFalse();
        growthPolicy.setRoom(8 * GIB, 24 * GIB);
        assertThat(growthPolicy.hasPlenty(2 * GIB - 1)).isTrue();
        assertThat(growthPolicy.hasPlenty(2 * GIB)).isFalse();
    }

    @Test
    void whatIsLeftIsTheDriversOrTheCaps() {
        GrowthPolicy growthPolicy = adaptive(64 * GIB, 48 * GIB);
        assertThat(growthPolicy.leftBytes(8 * GIB)).isEqualTo(40 * GIB);
        growthPolicy.setRoom(8 * GIB, 16 * GIB);
        assertThat(growthPolicy.leftBytes(8 * GIB)).isEqualTo(16 * GIB);
        assertThat(growthPolicy.leftBytes(10 * GIB)).isEqualTo(14 * GIB);
        assertThat(growthPolicy.leftBytes(30 * GIB)).isZero();
        growthPolicy.setRoom(8 * GIB, 50 * GIB);
        assertThat(growthPolicy.leftBytes(8 * GIB)).isEqualTo(40 * GIB);
    }

    @Test
    void theDriverIsAskedAgainAfterAnEighthOfWhatWasLeft() {
        GrowthPolicy growthPolicy = adaptive(64 * GIB, Long.MAX_VALUE);
        growthPolicy.setRoom(8 * GIB, 16 * GIB);
        assertThat(growthPolicy.lookAtBytes).isEqualTo(10 * GIB);
        growthPolicy.setRoom(8 * GIB, 8 * MIB);
        assertThat(growthPolicy.lookAtBytes).as("a slot at least").isEqualTo(8 * GIB + SLOT);
    }

    @Test
    void pagesAreSmallerWhereLittleIsLeft() {
        GrowthPolicy growthPolicy = adaptive(64 * GIB, Long.MAX_VALUE);
        growthPolicy.setPeak(17000 * MIB, false, 0);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(128 * MIB);
        growthPolicy.setRoom(0, 2 * GIB);
        assertThat(growthPolicy.pageBytes(false, 0)).isEqualTo(64 * MIB);
        assertThat(growthPolicy.pageBytes(false, 2 * GIB)).isEqualTo(SLOT);
    }
}
