package io.cistern.torch;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What the functions that C calls do with streams.
final class TorchFunctionsTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final TorchFunctions functions = new TorchFunctions(memory);
    private final long stream = gpu.streams().create(0, true, 0);
    private final long other = gpu.streams().create(0, true, 0);

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void aBlockThatAnotherStreamUsesIsNotHandedOutBeforeItIsDone() {
        long block = functions.allocate(MIB, 0, stream);
        gpu.keepBusy(0, other, 1_000_000_000);
        assertThat(functions.recordUse(block, other)).isEqualTo(TorchFunctions.DONE);
        functions.release(block, stream);
        assertThat(functions.allocate(MIB, 0, stream)).isNotEqualTo(block);
    }

    @Test
    void aBlockThatIsUsedOnItsStreamAloneIsHandedOutAtOnce() {
        long block = functions.allocate(MIB, 0, stream);
        functions.release(block, stream);
        assertThat(functions.allocate(MIB, 0, stream)).isEqualTo(block);
    }

    @Test
    void usesOfForeignMemoryArePassedOver() {
        assertThat(functions.recordUse(0x1234500, other)).isEqualTo(TorchFunctions.DONE);
    }

    @Test
    void aFailureIsKeptForItsThread() throws InterruptedException {
        assertThat(functions.allocate(-1, 0, stream)).isZero();
        assertThat(Failure.text(Failure.last())).contains("-1");
        assertThat(Failure.isOutOfMemory(Failure.last())).isFalse();
        assertThat(functions.allocate(1L << 60, 0, stream)).isZero();
        assertThat(Failure.isOutOfMemory(Failure.last())).isTrue();
        Thread thread = new Thread(() -> assertThat(Failure.last()).isNull());
        thread.start();
        thread.join();
    }
}
