package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Addresses are multiples, and blocks go back as the upstream knows them.
final class AlignedAllocatorTests extends AdaptorContract {
    @Override
    AlignedAllocator over(DeviceAllocator upstream) {
        return new AlignedAllocator(upstream, 1 << 20);
    }

    @ParameterizedTest
    @ValueSource(longs = {256, 512, 4096, 1 << 20})
    void addressesAreMultiples(long alignment) {
        AlignedAllocator aligned = new AlignedAllocator(upstream, alignment);
        for (int i = 0; i < 5; i++) {
            assertThat(aligned.allocate(100, DEVICE, STREAM) % alignment).isZero();
        }
    }

    @Test
    void aSizeThatCanNotBePaddedIsOutOfMemory() {
        assertThatThrownBy(() -> over(upstream).allocate(Long.MAX_VALUE, DEVICE, STREAM))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        failure -> assertThat(failure.byteSize()).isEqualTo(Long.MAX_VALUE));
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 128, 300, -256, 1L << 41})
    void otherAlignmentsAreRefused(long alignment) {
        assertThatThrownBy(() -> new AlignedAllocator(upstream, alignment))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(Long.toString(alignment));
    }
}
