package io.cistern.caching.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SizesTests {
    @Test
    void everySizeGetsTheSmallestClassThatHoldsIt() {
        for (long byteSize = 1; byteSize <= Sizes.SMALL_LIMIT; byteSize++) {
            int sizeClass = Sizes.classOf(byteSize);
            assertThat(Sizes.byteSize(sizeClass)).isGreaterThanOrEqualTo(byteSize);
            assertThat(sizeClass == 0 || Sizes.byteSize(sizeClass - 1) < byteSize)
                    .as("%d bytes", byteSize)
                    .isTrue();
        }
        assertThat(Sizes.classOf(Sizes.SMALL_LIMIT)).isEqualTo(Sizes.CLASSES - 1);
    }

    @Test
    void aClassIsWholeGranulesAndWastesLessThanAnEighth() {
        for (int sizeClass = 0; sizeClass < Sizes.CLASSES; sizeClass++) {
            long byteSize = Sizes.byteSize(sizeClass);
            long below = sizeClass == 0 ? 0 : Sizes.byteSize(sizeClass - 1);
            assertThat(byteSize % Sizes.GRANULE).isZero();
            assertThat(byteSize - below).isLessThanOrEqualTo(Math.max(Sizes.GRANULE, byteSize / 8));
            assertThat(Sizes.classOf(byteSize)).isEqualTo(sizeClass);
        }
    }

    @Test
    void whatIsNoSmallSizeHasNoClass() {
        assertThat(Sizes.hasClass(1)).isTrue();
        assertThat(Sizes.hasClass(0)).isFalse();
        assertThat(Sizes.hasClass(-1)).isFalse();
        assertThat(Sizes.hasClass(Sizes.SMALL_LIMIT + 1)).isFalse();
        assertThat(Sizes.hasClass(Long.MAX_VALUE)).isFalse();
    }
}
