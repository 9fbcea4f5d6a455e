package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Streams;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class StreamTests {
    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final long a = machine.stream();
    private final long b = machine.stream();
    private final long memory = gpu.memory().allocate(0, MIB);

    @AfterEach
    void close() {
        machine.open();
        gpu.close();
    }

    @Test
    void aLatchHoldsItsStreamAndNoOther() {
        machine.hold(a);
        gpu.copies().fillWords(0, memory, 1, 4, a);
        assertThat(gpu.streams().isIdle(0, a)).isFalse();
        assertThat(machine.read(memory, b)).isZero();
        machine.open();
        assertThat(machine.read(memory, a)).isEqualTo(1);
    }

    @Test
    void aStreamIsBusyForAsLongAsATestSays() {
        gpu.keepBusy(0, a, 5_000_000);
        gpu.copies().fillWords(0, memory, 3, 4, a);
        assertThat(gpu.streams().isIdle(0, a)).isFalse();
        assertThat(gpu.streams().isIdle(0, b)).isTrue();
        long before = gpu.virtualNanos();
        gpu.streams().synchronize(0, a);
        assertThat(gpu.virtualNanos() - before).isBetween(4_900_000L, 5_200_000L);
        assertThat(machine.read(memory, b)).isEqualTo(3);
        assertThatThrownBy(() -> gpu.keepBusy(0, 12345, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> gpu.keepBusy(17, 0, 1)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void synchronizeBlocksUntilAnotherThreadOpensTheLatch() throws InterruptedException {
        machine.hold(a);
        Thread waiter = Thread.ofVirtual().start(() -> gpu.streams().synchronize(0, a));
        assertThat(waiter.join(java.time.Duration.ofMillis(20))).isFalse();
        machine.open();
        waiter.join();
        assertThat(gpu.streams().isIdle(0, a)).isTrue();
    }

    @Test
    void aStreamThatWaitsForAnEventSeesWhatWasBeforeIt() {
        long event = gpu.events().create(0);
        machine.hold(a);
        gpu.copies().fillWords(0, memory, 7, 4, a);
        gpu.events().record(0, event, a);
        gpu.streams().await(0, b, event);
        assertThat(gpu.streams().isIdle(0, b)).isFalse();
        assertThat(gpu.events().hasPassed(0, event)).isFalse();
        gpu.events().destroy(0, event);
        machine.open();
        assertThat(machine.read(memory, b)).isEqualTo(7);
    }

    @Test
    void recordingAgainForgetsTheEarlierMarkButNotEarlierWaits() {
        long event = gpu.events().create(0);
        machine.hold(a);
        gpu.events().record(0, event, a);
        gpu.streams().await(0, b, event);
        gpu.events().record(0, event, machine.stream());
        assertThat(gpu.events().hasPassed(0, event)).isTrue();
        assertThat(gpu.streams().isIdle(0, b)).isFalse();
    }

    @Test
    void theLegacyStreamWaitsForBlockingStreamsAndTheyForIt() {
        long blocking = gpu.streams().create(0, false, 0);
        machine.hold(blocking);
        assertThat(gpu.streams().isIdle(0, Streams.LEGACY_DEFAULT)).isFalse();
        gpu.copies().fillWords(0, memory, 9, 4, Streams.LEGACY_DEFAULT);
        long second = gpu.streams().create(0, false, 0);
        gpu.events().record(0, gpu.events().create(0), second);
        assertThat(gpu.streams().isIdle(0, second)).isFalse();
        assertThat(gpu.streams().isIdle(0, a)).isTrue();
        machine.open();
        assertThat(machine.read(memory, second)).isEqualTo(9);
    }

    @Test
    void timedEventsTellTheVirtualTimeOfTheWorkBetween() {
        long start = gpu.events().createTimed(0);
        long end = gpu.events().createTimed(0);
        long big = gpu.memory().allocate(0, 4L << 30);
        gpu.events().record(0, start, a);
        gpu.copies().fillBytes(0, big, (byte) 1, 4L << 30, a);
        gpu.events().record(0, end, a);
        assertThatThrownBy(() -> gpu.events().elapsedMillis(0, start, end))
                .isInstanceOfSatisfying(
                        CudaException.class, e -> assertThat(e.result()).isEqualTo(CudaResult.NOT_READY));
        long before = gpu.virtualNanos();
        gpu.streams().synchronize(0, a);
        assertThat(gpu.virtualNanos()).isGreaterThan(before + 500_000);
        assertThat(gpu.events().elapsedMillis(0, start, end)).isBetween(0.9f, 1.4f);
    }

    @Test
    void theClockMovesByTheCostOfACall() {
        long before = gpu.virtualNanos();
        gpu.memory().freeBytes(0);
        assertThat(gpu.virtualNanos() - before).isEqualTo(4_000);
    }

    @Test
    void hostFunctionsRunInOrderWithoutFurtherCalls() throws InterruptedException {
        List<Integer> ran = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch last = new CountDownLatch(1);
        for (int i = 0; i < 5; i++) {
            int number = i;
            gpu.streams().launchHostFunction(0, a, () -> ran.add(number));
        }
        gpu.streams().launchHostFunction(0, a, last::countDown);
        last.await();
        assertThat(ran).containsExactly(0, 1, 2, 3, 4);
    }

    @Test
    void aHostFunctionThatBlocksHoldsItsStreamButNotTheDriver() {
        CountDownLatch go = new CountDownLatch(1);
        gpu.streams().launchHostFunction(0, a, () -> {
            try {
                go.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        gpu.copies().fillWords(0, memory, 3, 1, a);
        gpu.streams().synchronize(0, b);
        assertThat(gpu.streams().isIdle(0, a)).isFalse();
        go.countDown();
        assertThat(machine.read(memory, a)).isEqualTo(3);
    }

    @Test
    void effectsComeInTheOrderOfVirtualTimeAcrossStreams() {
        long big = gpu.memory().allocate(0, 8L << 30);
        gpu.copies().fillBytes(0, big, (byte) 1, 8L << 30, a);
        gpu.copies().fillBytes(0, big, (byte) 2, 4, b);
        gpu.devices().synchronize(0);
        // The short fill ended first, though it was issued last: unordered streams, so the long one wins.
        assertThat(machine.mismatches(big, 2L << 30, 0x01010101, a)).isZero();
    }

    @Test
    void registeredKernelsReadAndWriteMemory() {
        gpu.kernels()
                .register(
                        "custom",
                        launch -> launch.memory()
                                .writeLong(launch.longAt(0), launch.memory().readLong(launch.longAt(0)) + 5));
        gpu.copies().fillBytes(0, memory, (byte) 0, 8, a);
        machine.launch("custom", a, memory);
        machine.launch("custom", a, memory);
        assertThat(machine.read(memory, a)).isEqualTo(10);
    }

    @Test
    void sequencesAreWrittenAndCounted() {
        machine.launch("cistern_write_sequence_u32", a, memory, 1_000L, -3);
        machine.host.set(java.lang.foreign.ValueLayout.JAVA_LONG, 8, 0);
        long counter = machine.host.address() + 8;
        machine.launch("cistern_count_sequence_mismatches_u32", a, memory, 1_000L, -3, counter);
        machine.launch("cistern_count_sequence_mismatches_u32", a, memory, 1_000L, -2, counter);
        gpu.streams().synchronize(0, a);
        assertThat(machine.host.get(java.lang.foreign.ValueLayout.JAVA_LONG, 8)).isEqualTo(1_000);
    }
}
