package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.MemoryPool;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.spi.SleepMode;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// How long sleeping and waking takes on the simulated GPU's clock, whose calls and copies take what they were
/// measured to take on an H200.
final class SleepRateTests extends PoolFixture {
    private static final long BYTES = 256 * MIB;

    SleepRateTests() {
        super(512 * MIB);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:page_size=2MiB"})
    void mappingHidesBehindCopying(String spec) {
        try (MemoryPool pool = builder().spec(spec).open()) {
            long block = pool.allocate(BYTES, DEVICE, stream);
            PinnedMemory pinned = PinnedMemory.of(memory);
            pool.sleep(SleepMode.KEEP); // pins
            pool.wake();
            long copied = nanos(() -> copyToHost(pinned, block));
            long slept = nanos(() -> pool.sleep(SleepMode.KEEP));
            long woke = nanos(pool::wake);
            assertThat(LongStream.of(slept, woke))
                    .as("nanoseconds to sleep and to wake, %d to copy", copied)
                    .allMatch(nanos -> copied >= 0.8 * nanos);
            memory.free(block, stream);
        }
    }

    private long nanos(Runnable action) {
        long start = gpu.nanoTime();
        action.run();
        return gpu.nanoTime() - start;
    }

    private void copyToHost(PinnedMemory pinned, long block) {
        try (PinnedBuffer host = pinned.allocate(64 * MIB)) {
            for (long at = 0; at < BYTES; at += 64 * MIB) {
                gpu.copies().toHost(DEVICE, host.segment(), block + at, 64 * MIB, stream);
            }
            gpu.streams().synchronize(DEVICE, stream);
        }
    }
}
