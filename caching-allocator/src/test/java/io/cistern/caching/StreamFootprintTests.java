package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/// What a stream costs of the Java heap, for programs that have thousands.
class StreamFootprintTests {
    private static final int STREAMS = 200;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /// An upper bound, in which the simulated driver's own records and all garbage are included.
    private static long heapBytesOfAStream(long... byteSizes) {
        try (SimulatedCaching caching = new SimulatedCaching(64L << 30)) {
            useStream(caching, byteSizes);
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < STREAMS; i++) {
                useStream(caching, byteSizes);
            }
            return (THREADS.getCurrentThreadAllocatedBytes() - before) / STREAMS;
        }
    }

    private static void useStream(SimulatedCaching caching, long... byteSizes) {
        long stream = caching.newStream();
        for (long byteSize : byteSizes) {
            caching.free(caching.allocate(byteSize, stream), stream);
        }
    }

    @Test
    void aStreamWithOneBlockTakesLittle() {
        assertThat(heapBytesOfAStream(4096)).isLessThan(60_000);
    }

    @Test
    void soDoesOneWithSmallMiddleAndLargeBlocks() {
        assertThat(heapBytesOfAStream(4096, 3L << 20, 9L << 20)).isLessThan(220_000);
    }
}
