package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/// The driver's clock, and time that passes without a call.
final class PassingTimeTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();

    @Test
    void theClockOfTheDriverIsTheVirtualOne() {
        gpu.memory().freeBytes(0);
        assertThat(gpu.nanoTime()).isPositive().isEqualTo(gpu.virtualNanos());
    }

    @Test
    void workThatIsDueMeanwhileIsDone() {
        long stream = gpu.streams().create(0);
        long address = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, address, (byte) 1, 1 << 20, stream);
        long before = gpu.nanoTime();

        gpu.passTime(1_000_000);

        assertThat(gpu.nanoTime()).isEqualTo(before + 1_000_000);
        assertThat(gpu.streams().isIdle(0, stream)).isTrue();
    }

    @Test
    void itDoesNotRunBackwards() {
        assertThatThrownBy(() -> gpu.passTime(-1)).isInstanceOf(IllegalArgumentException.class);
    }
}
