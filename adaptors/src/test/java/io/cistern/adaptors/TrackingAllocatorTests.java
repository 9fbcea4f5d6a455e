package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// Live blocks are known with their sites.
final class TrackingAllocatorTests extends AdaptorContract {
    @Override
    TrackingAllocator over(DeviceAllocator upstream) {
        return new TrackingAllocator(upstream);
    }

    @Override
    long believedLive(AllocatorAdaptor adaptor) {
        return ((TrackingAllocator) adaptor).liveBlocks().size();
    }

    @Test
    void aBlockNamesTheMethodThatAskedForIt() {
        TrackingAllocator tracking = over(new LimitAllocator(upstream, 1000));
        long address = askingMethod(new LimitAllocator(tracking, 1000));
        assertThat(tracking.liveBlocks()).singleElement().satisfies(block -> {
            assertThat(block.address()).isEqualTo(address);
            assertThat(block.byteSize()).isEqualTo(100);
            assertThat(block.site().getFirst().getMethodName()).isEqualTo("askingMethod");
            assertThat(block.site()).hasSizeLessThanOrEqualTo(TrackingAllocator.DEFAULT_FRAMES);
            assertThat(block.toString()).contains("100 bytes on device 1", "at ", "askingMethod");
        });
    }

    @Test
    void theOldestComesFirst() {
        TrackingAllocator tracking = new TrackingAllocator(upstream, 0);
        for (int i = 1; i <= 4; i++) {
            tracking.allocate(i, DEVICE, STREAM);
        }
        assertThat(tracking.liveBlocks()).extracting(TrackedBlock::byteSize).containsExactly(1L, 2L, 3L, 4L);
        assertThat(tracking.liveBlocks().getFirst().site()).isEmpty();
    }

    @Test
    void aNegativeNumberOfFramesIsRefused() {
        assertThatThrownBy(() -> new TrackingAllocator(upstream, -1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("-1");
    }

    private static long askingMethod(DeviceAllocator allocator) {
        return allocator.allocate(100, DEVICE, STREAM);
    }
}
