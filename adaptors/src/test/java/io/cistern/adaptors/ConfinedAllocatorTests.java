package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// One thread alone calls the upstream.
final class ConfinedAllocatorTests extends AdaptorContract {
    @Override
    ConfinedAllocator over(DeviceAllocator upstream) {
        return new ConfinedAllocator(upstream);
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
    void freesOfOtherThreadsWaitForTheOwnersNextCall() {
        ConfinedAllocator confined = over(upstream);
        long address = confined.allocate(100, DEVICE, STREAM);
        onOtherThread(() -> confined.free(address, 100, DEVICE, STREAM));
        assertThat(upstream.liveBlocks()).isOne();
        assertThat(confined.allocate(100, DEVICE, STREAM)).isEqualTo(address);
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
