package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.Streams;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamOrder;
import org.junit.jupiter.api.Test;

/// One thread alone calls the upstream.
final class ConfinedAllocatorTests extends AdaptorContract {
    private static final long FENCE = 7;

    private boolean passed;

    @Override
    ConfinedAllocator over(DeviceAllocator upstream) {
        return new ConfinedAllocator(upstream, new OneFence());
    }

    /// A stream that gets on when the test says so.
    private final class OneFence implements StreamOrder {
        @Override
        public long record(int device, long stream) {
            return FENCE;
        }

        @Override
        public long recordAll(int device) {
            return FENCE;
        }

        @Override
        public boolean passed(int device, long fence) {
            return passed;
        }

        @Override
        public void await(int device, long stream, long fence) {}

        @Override
        public void synchronize(int device, long fence) {
            passed = true;
        }

        @Override
        public void release(int device, long fence) {}
    }

    /// Nobody but the owner can get the address in between.
    @Override
    void elsewhere(Runnable task) {
        task.run();
    }

    @Test
    void anotherThreadIsToldWhoseItIs() {
        ConfinedAllocator confined = over(upstream);
        onOtherThread(() -> {
            assertThatThrownBy(() -> confined.allocate(1, DEVICE, STREAM))
                    .isInstanceOf(WrongThreadException.class)
                    .hasMessageContaining("another");
            assertThatThrownBy(() -> confined.trim(DEVICE, 0)).isInstanceOf(WrongThreadException.class);
            assertThatThrownBy(() -> confined.streamClosing(DEVICE, 0)).isInstanceOf(WrongThreadException.class);
        });
        assertThat(upstream.calls).isEmpty();
    }

    @Test
    void aVirtualThreadIsNamedByItsNumber() throws InterruptedException {
        ConfinedAllocator confined = over(upstream);
        String[] message = new String[1];
        Thread virtual = Thread.ofVirtual().start(() -> {
            try {
                confined.trim(DEVICE, 0);
            } catch (WrongThreadException refused) {
                message[0] = refused.getMessage();
            }
        });
        virtual.join();
        assertThat(message[0]).endsWith("not to '#" + virtual.threadId() + "'");
    }

    @Test
    void freesOfOtherThreadsWaitForTheOwnersNextCall() {
        ConfinedAllocator confined = over(upstream);
        long address = confined.allocate(100, DEVICE, STREAM);
        onOtherThread(() -> confined.free(address, 100, DEVICE, STREAM));
        assertThat(upstream.liveBlocks()).isOne();
        assertThat(confined.allocate(100, DEVICE, STREAM)).isEqualTo(address);
    }

    @Test
    void aFreeOnAnotherThreadsOwnStreamWaitsUntilItHasPassed() {
        ConfinedAllocator confined = over(upstream);
        long address = confined.allocate(100, DEVICE, Streams.PER_THREAD_DEFAULT);
        onOtherThread(() -> confined.free(address, 100, DEVICE, Streams.PER_THREAD_DEFAULT));
        confined.trim(DEVICE, 0);
        assertThat(upstream.liveBlocks()).isOne();
        passed = true;
        confined.trim(DEVICE, 0);
        assertThat(upstream.liveBlocks()).isZero();
    }

    @Test
    void closingWaitsForTheStreamsOfFreesThatWait() {
        ConfinedAllocator confined = over(upstream);
        long address = confined.allocate(100, DEVICE, Streams.PER_THREAD_DEFAULT);
        onOtherThread(() -> confined.free(address, 100, DEVICE, Streams.PER_THREAD_DEFAULT));
        confined.close();
        assertThat(upstream.liveBlocks()).isZero();
    }

    @Test
    void freesThatStillWaitAreMadeWhenItCloses() {
        ConfinedAllocator confined = over(upstream);
        long address = confined.allocate(100, DEVICE, STREAM);
        onOtherThread(() -> confined.free(address, 100, DEVICE, STREAM));
        confined.close();
        assertThat(upstream.liveBlocks()).isZero();
    }
}
