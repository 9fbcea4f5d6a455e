package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// What every adaptor does, whatever it adds.
abstract class AdaptorContract {
    static final int DEVICE = 1;
    static final long STREAM = 9;

    final StackUpstream upstream = new StackUpstream();

    /// The adaptor under test over an upstream.
    abstract AllocatorAdaptor over(DeviceAllocator upstream);

    /// What the adaptor believes is live, or -1 if it does not know.
    long believedLive(AllocatorAdaptor adaptor) {
        return -1;
    }

    @Test
    void everythingElseGoesToTheUpstream() {
        AllocatorAdaptor adaptor = over(upstream);

        assertThat(adaptor.upstream()).isSameAs(upstream);
        assertThat(adaptor.reservedBytes(DEVICE)).hasValue(78);
        assertThat(adaptor.trim(DEVICE, 3)).isEqualTo(5);
        adaptor.streamClosing(DEVICE, STREAM);
        assertThat(upstream.calls).containsExactly("trim 1 3", "streamClosing 1 9");
        assertThat(adaptor.extension(StackUpstream.class)).containsSame(upstream);
        assertThat(adaptor.extension(adaptor.getClass()).map(DeviceAllocator.class::cast))
                .containsSame(adaptor);
        assertThat(adaptor.extension(Runnable.class)).isEmpty();
    }

    @Test
    void theUpstreamIsNotTheAdaptorsToClose() {
        over(upstream).close();

        assertThat(upstream.calls).isEmpty();
    }

    @Test
    void aFailureOfTheUpstreamLeavesNothingBehind() {
        AllocatorAdaptor adaptor = over(upstream.failing(1));

        assertThatThrownBy(() -> adaptor.allocate(100, DEVICE, STREAM))
                .isInstanceOfSatisfying(DeviceOutOfMemoryException.class, failure -> {
                    assertThat(failure.byteSize()).isEqualTo(100);
                    assertThat(failure.device()).isEqualTo(DEVICE);
                    assertThat(failure).hasMessageContaining("upstream is full");
                });
        assertThat(believedLive(adaptor)).isIn(0L, -1L);
        long address = adaptor.allocate(100, DEVICE, STREAM);
        adaptor.free(address, 100, DEVICE, STREAM);
        assertThat(upstream.liveBlocks()).isZero();
    }

    /// The address is handed out again while its free is under way; books kept after the upstream's call would
    /// lose it.
    @Test
    void anAddressMayComeBackBeforeItsFreeReturns() {
        AllocatorAdaptor adaptor = over(upstream);
        long[] again = new long[1];
        upstream.beforeFreeReturns = () -> elsewhere(() -> again[0] = adaptor.allocate(200, DEVICE, STREAM));

        long address = adaptor.allocate(100, DEVICE, STREAM);
        adaptor.free(address, 100, DEVICE, STREAM);

        assertThat(again[0]).isEqualTo(address);
        assertThat(upstream.liveBlocks()).isOne();
        assertThat(believedLive(adaptor)).isIn(1L, -1L);
        adaptor.free(again[0], 200, DEVICE, STREAM);
        assertThat(upstream.liveBlocks()).isZero();
        assertThat(believedLive(adaptor)).isIn(0L, -1L);
    }

    /// Runs something on another thread to its end.
    void elsewhere(Runnable task) {
        onOtherThread(task);
    }

    static void onOtherThread(Runnable task) {
        Throwable[] thrown = new Throwable[1];
        Thread thread = Thread.ofPlatform()
                .name("another")
                .uncaughtExceptionHandler((_, failure) -> thrown[0] = failure)
                .start(task);
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        assertThat(thrown[0]).isNull();
    }
}
