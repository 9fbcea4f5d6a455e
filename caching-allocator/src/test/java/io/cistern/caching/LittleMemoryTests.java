package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.DriverCall;
import org.junit.jupiter.api.Test;

/// Up to a 1024th of the device, pages are created rather than moved: streams of programs that need little do not wait
/// for each other.
class LittleMemoryTests {
    private static final long KIB = 1L << 10;
    private static final long MIB = 1L << 20;

    /// Little is 64 MiB.
    private static final long DEVICE = 64L << 30;

    private static long movedPages(SimulatedCaching caching) {
        return caching.caching().statistics(SimulatedCaching.DEVICE).getOrDefault("pages.taken", -1L);
    }

    /// Fills a block on each of two streams in turn, with no other block alive.
    private static void alternate(SimulatedCaching caching, long byteSize) {
        long[] streams = {caching.newStream(), caching.newStream()};
        for (int i = 0; i < 100; i++) {
            long stream = streams[i % 2];
            long block = caching.allocate(byteSize, stream);
            caching.gpu.copies().fillBytes(SimulatedCaching.DEVICE, block, (byte) i, byteSize, stream);
            caching.free(block, stream);
        }
    }

    @Test
    void eachStreamHasMemoryOfItsOwn() {
        try (SimulatedCaching caching = new SimulatedCaching(DEVICE)) {
            alternate(caching, 4 * MIB);
            assertThat(movedPages(caching)).isZero();
            assertThat(caching.gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isZero();
            assertThat(caching.reservedBytes()).isEqualTo(8 * MIB);
        }
    }

    @Test
    void whatIsNotLittleServesBoth() {
        try (SimulatedCaching caching = new SimulatedCaching(DEVICE, "caching:reuse=wait")) {
            alternate(caching, 40 * MIB);
            assertThat(movedPages(caching)).isPositive();
            assertThat(caching.reservedBytes()).isLessThanOrEqualTo(64 * MIB);
        }
    }

    @Test
    void withTightPagesNothingIsLittle() {
        try (SimulatedCaching caching = new SimulatedCaching(DEVICE, "caching:fit=tight")) {
            alternate(caching, 4 * MIB);
            assertThat(movedPages(caching)).isPositive();
            assertThat(caching.reservedBytes()).isEqualTo(4 * MIB);
        }
    }

    /// Small blocks of many streams take more than their share; the pages of a large block went to and fro between it
    /// and a small one of its own stream.
    @Test
    void smallAndLargeBlocksOfAStreamComeToRest() {
        try (SimulatedCaching caching = new SimulatedCaching(DEVICE)) {
            long[] streams = new long[16];
            for (int i = 0; i < streams.length; i++) {
                streams[i] = caching.newStream();
                caching.free(caching.allocate(KIB, streams[i]), streams[i]);
            }
            for (int i = 0; i < 100; i++) {
                caching.free(caching.allocate(i % 2 == 0 ? KIB : 4 * MIB, streams[0]), streams[0]);
            }
            assertThat(movedPages(caching)).isZero();
            assertThat(caching.reservedBytes()).isEqualTo((16 * 2 + 4) * MIB);
        }
    }
}
