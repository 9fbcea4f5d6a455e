package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.caching.CachingProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The calls of a group are made at its end.
class GroupTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new CachingProvider()), List.of(new NcclSourceProvider())))
            .open();
    private final MemoryPool pool = memory.pools().open("nccl");
    private final Nccl nccl = Nccl.of(memory);
    private final Communicator rank = nccl.initAll(0).getFirst();
    private final long stream = gpu.streams().create(0);

    @AfterEach
    void close() {
        rank.close();
        pool.close();
        memory.close();
        gpu.close();
    }

    private DeviceBuffer buffer(int value) {
        DeviceBuffer buffer = DeviceBuffer.allocate(pool, 4, 0, stream);
        buffer.fill((byte) value);
        return buffer;
    }

    private static byte[] content(DeviceBuffer buffer) {
        byte[] bytes = new byte[4];
        buffer.copyTo(MemorySegment.ofArray(bytes));
        return bytes;
    }

    /// Its memory may serve another buffer by then.
    @Test
    void aBufferThatIsClosedInsideAGroupIsRefusedByIt() {
        try (DeviceBuffer from = buffer(1)) {
            DeviceBuffer[] next = new DeviceBuffer[1];
            assertThatIllegalStateException()
                    .isThrownBy(() -> nccl.group(() -> {
                        try (DeviceBuffer to = buffer(2)) {
                            rank.allReduce(from, to, DataType.INT8, ReductionOp.SUM, stream);
                        }
                        next[0] = buffer(3);
                    }))
                    .withMessageContaining("is closed");
            assertThat(content(next[0])).containsOnly(3);
            next[0].close();
        }
    }

    @Test
    void aBufferThatIsClosedAfterItsGroupHasItsCallBehindIt() {
        try (DeviceBuffer to = buffer(2)) {
            try (DeviceBuffer from = buffer(1)) {
                nccl.group(() -> rank.allReduce(from, to, DataType.INT8, ReductionOp.SUM, stream));
            }
            nccl.group(() -> {});
            assertThat(content(to)).containsOnly(1);
        }
    }
}
