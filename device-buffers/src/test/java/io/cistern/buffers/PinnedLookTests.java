package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How often the driver is asked for pinned memory that a stream uses, where there are many pieces of it.
class PinnedLookTests {
    private static final int DEVICE = 0;
    private static final int BYTES = 5000;

    /// More than are looked at.
    private static final int PIECES = 10 * PinnedMemory.MAX_LOOKS;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    private final long stream = gpu.streams().create(DEVICE);
    private final MemorySegment latch = gpu.memory().allocateHost(DEVICE, Integer.BYTES);

    PinnedLookTests() {
        memory.setCurrent("direct");
        latch.set(ValueLayout.JAVA_INT, 0, 0);
        MemoryKernels.load(gpu, DEVICE).latch(latch.address(), stream);
    }

    @AfterEach
    void letGo() {
        letStreamFinish();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private void letStreamFinish() {
        latch.set(ValueLayout.JAVA_INT, 0, 1);
        gpu.streams().synchronize(DEVICE, stream);
    }

    private void useAndClose() {
        try (PinnedBuffer buffer = PinnedMemory.of(memory).allocate(BYTES)) {
            buffer.recordUse(DEVICE, stream);
        }
    }

    private long queriesOf(Runnable action) {
        long before = gpu.calls().of(DriverCall.EVENT_QUERY);
        action.run();
        return gpu.calls().of(DriverCall.EVENT_QUERY) - before;
    }

    private long pinnedPieces() {
        return PinnedMemory.of(memory).statistics().get("allocations.current");
    }

    @Test
    void anAllocationLooksAtFewOfTheBlocksThatAStreamUses() {
        repeat(this::useAndClose);
        assertThat(queriesOf(this::useAndClose)).isEqualTo(PinnedMemory.MAX_LOOKS);
    }

    @Test
    void allBlocksComeBackWhenTheStreamHasPassed() {
        repeat(this::useAndClose);
        long pieces = pinnedPieces();
        letStreamFinish();
        List<PinnedBuffer> again = new ArrayList<>();
        repeat(() -> again.add(PinnedMemory.of(memory).allocate(BYTES)));
        assertThat(pinnedPieces()).isEqualTo(pieces);
        again.forEach(PinnedBuffer::close);
    }

    @Test
    void aCopyOfAnArrayLooksAtFewOfThePiecesOfOthersUnderWay() {
        MemorySegment array = MemorySegment.ofArray(new byte[BYTES]);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, DEVICE, stream);
        Runnable copy = () -> buffer.copyFrom(array, stream, CopyMode.NON_BLOCKING);
        repeat(copy);
        assertThat(queriesOf(copy)).isEqualTo(PinnedMemory.MAX_LOOKS);
        long pieces = pinnedPieces();
        letStreamFinish();
        repeat(copy);
        assertThat(pinnedPieces()).isEqualTo(pieces);
        buffer.close();
    }

    private static void repeat(Runnable action) {
        for (int i = 0; i < PIECES; i++) {
            action.run();
        }
    }
}
