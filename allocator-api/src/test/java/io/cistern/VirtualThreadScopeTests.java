package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class VirtualThreadScopeTests {
    private static final int THREADS = 100_000;

    /// Each pool hands out addresses of a range of its own, so that an address tells who served.
    private static final long RANGE = 1L << 40;

    @TempDir
    private Path folder;

    /// All are in their scopes, with a block each, at the same time. That takes a few seconds on two processors;
    /// where each waited for counters that a parked thread holds, it would not end.
    @Test
    @Timeout(value = 2, unit = TimeUnit.MINUTES)
    void aHundredThousandAtOnceAreServedRightAndPinNoCarrier() throws Exception {
        List<RecordedEvent> events;
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(1 << 20).build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open();
                Recording recording = new Recording()) {
            Allocator[] pools = new Allocator[4];
            for (int i = 0; i < pools.length; i++) {
                pools[i] = memory.open(OpenOptions.made("pool" + i, new Counting((i + 1) * RANGE)));
            }
            memory.currents().set(memory.open(OpenOptions.made("current", new Counting(0))));
            for (int warm = 0; warm < 3; warm++) {
                wrong(memory, pools, 100); // a thread that waits while another loads a class is pinned
            }
            recording.enable("jdk.VirtualThreadPinned").withThreshold(Duration.ZERO);
            recording.enable("jdk.VirtualThreadStart").withoutStackTrace();
            recording.start();
            assertThat(wrong(memory, pools, THREADS)).isZero();
            recording.stop();
            events = events(recording);
            for (Allocator pool : pools) {
                assertThat(pool.statistics(0).allocations()).isEqualTo((THREADS + 300) / pools.length);
                assertThat(pool.statistics(0).liveBlocks()).isZero();
                assertThat(pool.statistics(0).requestedBytes()).isZero();
            }
        }
        assertThat(events)
                .filteredOn(event -> event.getEventType().getName().equals("jdk.VirtualThreadStart"))
                .hasSize(THREADS);
        assertThat(events.stream().filter(VirtualThreadScopeTests::isPinnedHere).toList())
                .isEmpty();
    }

    /// The recorder pins threads too, when it notes their start.
    private static boolean isPinnedHere(RecordedEvent event) {
        return event.getEventType().getName().equals("jdk.VirtualThreadPinned")
                && event.getStackTrace() != null
                && event.getStackTrace().getFrames().stream()
                        .anyMatch(frame -> frame.getMethod().getType().getName().startsWith("io.cistern."));
    }

    private static int wrong(DeviceMemory memory, Allocator[] pools, int threads) throws InterruptedException {
        AtomicInteger wrong = new AtomicInteger();
        CountDownLatch inside = new CountDownLatch(threads);
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < threads; i++) {
                int mine = i % pools.length;
                executor.execute(() -> {
                    try (Scope _ = pools[mine].enter()) {
                        long block = memory.allocate(1000, 0, 0);
                        inside.countDown();
                        inside.await();
                        memory.free(block, 0);
                        if (block / RANGE != mine + 1) {
                            wrong.incrementAndGet();
                        }
                    } catch (Throwable failure) {
                        wrong.incrementAndGet();
                        inside.countDown();
                    }
                });
            }
        }
        return wrong.get();
    }

    private List<RecordedEvent> events(Recording recording) throws IOException {
        Path file = folder.resolve("recording.jfr");
        recording.dump(file);
        return RecordingFile.readAllEvents(file);
    }

    private static final class Counting implements DeviceAllocator {
        private final AtomicLong next;

        Counting(long base) {
            next = new AtomicLong(base + (1 << 20));
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(1024);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
