package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Streams;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class HazardTests {
    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final long a = machine.stream();
    private final long b = machine.stream();

    @AfterEach
    void close() {
        gpu.close();
    }

    private void order(long before, long after) {
        long event = gpu.events().create(0);
        gpu.events().record(0, event, before);
        gpu.streams().await(0, after, event);
    }

    @Test
    void useOnAStreamThatDoesNotWaitForTheAllocationIsReported() {
        gpu.copies().fillBytes(0, gpu.memory().allocate(0, MIB), (byte) 1, MIB, a);
        long block = gpu.pools().allocate(0, MIB, a);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.USE_BEFORE_ALLOCATION);
    }

    @Test
    void freeOnAStreamThatDoesNotWaitForAUseIsReported() {
        long block = gpu.pools().allocate(0, MIB, a);
        order(a, b);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        gpu.pools().free(0, block, a);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.FREE_BEFORE_USE_ENDS);
    }

    @Test
    void theEndOfAGraphThatTheHostIsToldEndsItsUses() throws InterruptedException {
        long block = gpu.pools().allocate(0, MIB, a);
        order(a, b);
        gpu.graphs().beginCapture(0, b, CaptureMode.RELAXED);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        long graph = gpu.graphs().endCapture(0, b);
        CountDownLatch gone = new CountDownLatch(1);
        gpu.graphs().retain(0, graph, gone::countDown);
        long executable = gpu.graphs().instantiate(0, graph, true);
        gpu.graphs().launch(0, executable, b);
        gpu.graphs().destroyExecutable(0, executable);
        gpu.graphs().destroy(0, graph);
        assertThat(gone.await(10, TimeUnit.SECONDS)).isTrue();
        gpu.pools().free(0, block, a);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void orderByEventsOverAThirdStreamIsOrder() {
        long third = machine.stream();
        long block = gpu.pools().allocate(0, MIB, a);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, a);
        order(a, third);
        order(third, b);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        order(b, a);
        gpu.pools().free(0, block, a);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void anEventFromBeforeTheUseIsNoOrder() {
        long block = gpu.pools().allocate(0, MIB, a);
        order(a, b);
        order(b, a);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        gpu.pools().free(0, block, a);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.FREE_BEFORE_USE_ENDS);
    }

    @Test
    void whatTheHostWaitedForIsOrdered() {
        long block = gpu.pools().allocate(0, MIB, a);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, a);
        gpu.streams().synchronize(0, a);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, b);
        gpu.devices().synchronize(0);
        gpu.pools().free(0, block, a);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void theLegacyDefaultStreamOrdersBlockingStreams() {
        long first = gpu.streams().create(0, false, 0);
        long second = gpu.streams().create(0, false, 0);
        long block = gpu.pools().allocate(0, MIB, first);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, Streams.LEGACY_DEFAULT);
        gpu.copies().fillBytes(0, block, (byte) 1, MIB, second);
        gpu.pools().free(0, block, Streams.LEGACY_DEFAULT);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void useAfterFreeIsReportedEvenWhileTheMemoryIsStillThere() {
        long block = gpu.pools().allocate(0, MIB, a);
        gpu.pools().free(0, block, a);
        MemoryTests.assertFails(
                io.cistern.cuda.CudaResult.INVALID_VALUE, () -> gpu.copies().fillBytes(0, block, (byte) 1, 1, a));
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.USE_AFTER_FREE);
    }

    @Test
    void foreignHandlesAreReported() {
        try (MachineFixture two = MachineFixture.withDevices(2)) {
            long stream = two.stream();
            MemoryTests.assertFails(
                    io.cistern.cuda.CudaResult.INVALID_HANDLE,
                    () -> two.gpu.streams().isIdle(1, stream));
            assertThat(two.gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.FOREIGN_HANDLE);
        }
    }
}
