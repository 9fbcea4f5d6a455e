package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/// Which values the options of a pool may have.
class HandlePoolOptionsTests {
    private static final HandlePoolOptions DEFAULT = HandlePoolOptions.DEFAULT;
    private static final Duration NEGATIVE = Duration.ofNanos(-1);

    @Test
    void theLeastValuesAreLegal() {
        HandlePoolOptions least = DEFAULT.withMaxVirtualThreads(1)
                .withMaxHandles(1)
                .withMaxWait(Duration.ZERO)
                .withIdleAge(Duration.ZERO)
                .withCloseWait(Duration.ZERO);
        assertThat(least)
                .isEqualTo(
                        new HandlePoolOptions(DEFAULT.strategy(), 1, 1, Duration.ZERO, Duration.ZERO, Duration.ZERO));
    }

    @Test
    void lessIsRefusedByName() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DEFAULT.withMaxVirtualThreads(0))
                .withMessage("maxVirtualThreads: 0, must be at least 1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DEFAULT.withMaxHandles(0))
                .withMessage("maxHandles: 0, must be at least 1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DEFAULT.withMaxWait(NEGATIVE))
                .withMessageStartingWith("maxWait: ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DEFAULT.withIdleAge(NEGATIVE))
                .withMessageStartingWith("idleAge: ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DEFAULT.withCloseWait(NEGATIVE))
                .withMessageStartingWith("closeWait: ");
    }

    @Test
    void theWorkspaceOfCublasIsThatWhichNvidiaRecommends() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            assertThat(HandleLibrary.cublasWorkspaceBytes(memory, 0))
                    .as("of an H200")
                    .isEqualTo(32L << 20);
        }
    }
}
