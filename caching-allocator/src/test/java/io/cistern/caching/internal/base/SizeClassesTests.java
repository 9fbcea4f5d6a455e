package io.cistern.caching.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SizeClassesTests {
    @Test
    void everySizeGetsTheSmallestClassThatHoldsIt() {
        for (long byteSize = 1; byteSize <= Sizes.SMALL_LIMIT; byteSize++) {
            int sizeClass = SizeClasses.of(byteSize);
            assertThat(SizeClasses.byteSize(sizeClass)).isGreaterThanOrEqualTo(byteSize);
            assertThat(sizeClass == 0 || SizeClasses.byteSize(sizeClass - 1) < byteSize)
                    .as("%d bytes", byteSize)
                    .isTrue();
        }
        assertThat(SizeClasses.of(Sizes.SMALL_LIMIT)).isEqualTo(SizeClasses.COUNT - 1);
    }

    @Test
    void aClassIsWholeGranulesAndWastesLessThanAnEighth() {
        for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
            long byteSize = SizeClasses.byteSize(sizeClass);
            long below = sizeClass == 0 ? 0 : SizeClasses.byteSize(sizeClass - 1);
            assertThat(byteSize % Sizes.GRANULE).isZero();
            assertThat(byteSize - below).isLessThanOrEqualTo(Math.max(Sizes.GRANULE, byteSize / 8));
            assertThat(SizeClasses.of(byteSize)).isEqualTo(sizeClass);
        }
    }

    @Test
    void whatIsNoSmallSizeHasNoClass() {
        assertThat(SizeClasses.has(1)).isTrue();
        assertThat(SizeClasses.has(0)).isFalse();
        assertThat(SizeClasses.has(-1)).isFalse();
        assertThat(SizeClasses.has(Sizes.SMALL_LIMIT + 1)).isFalse();
        assertThat(SizeClasses.has(Long.MAX_VALUE)).isFalse();
    }
}
