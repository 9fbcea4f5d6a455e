package io.cistern.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.hazards.StreamClocks.Stream;
import java.lang.ref.WeakReference;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// Streams that are over are forgotten, however many a program makes.
class StreamClocksTests {
    private static final int STREAMS = 2100;
    private static final long EVENT = 7;
    private static final long PER_THREAD = 2;

    private final StreamClocks clocks = new StreamClocks((_, _) -> false);

    private static boolean isForgotten(WeakReference<Stream> stream) {
        for (int i = 0; i < 10 && stream.get() != null; i++) {
            System.gc();
        }
        return stream.get() == null;
    }

    /// Each waits for the one before it, and the host for none.
    @Test
    void aStreamThatEndedIsNotKeptByThoseAfterIt() {
        WeakReference<Stream> first = new WeakReference<>(clocks.next(0, 100));
        for (int i = 100; i < 100 + STREAMS; i++) {
            clocks.record(0, EVENT, i);
            clocks.await(0, i + 1, EVENT);
            clocks.next(0, i + 1);
            clocks.ended(0, i);
        }
        assertThat(isForgotten(first)).isTrue();
    }

    @Test
    void theDefaultStreamsOfThreadsEndWithThem() throws InterruptedException {
        WeakReference<Stream> first = usedByThread();
        usedByThread();
        usedByThread();
        assertThat(isForgotten(first)).isTrue();
    }

    private WeakReference<Stream> usedByThread() throws InterruptedException {
        Stream[] used = new Stream[1];
        Thread thread = Thread.ofPlatform().start(() -> {
            used[0] = clocks.next(0, PER_THREAD);
            clocks.finished(Map.of(used[0], used[0].issued()));
        });
        thread.join();
        return new WeakReference<>(used[0]);
    }

    @Test
    void aBlockForgetsTheStreamsThatAreOver() {
        MemoryUses uses = new MemoryUses(clocks, (_, _, _, _, _) -> {});
        uses.allocated(clocks.next(0, 50), 4096, 4096, new Call("call"));
        WeakReference<Stream> first = recordedAndOver(uses, 100);
        for (int i = 101; i < 200; i++) {
            recordedAndOver(uses, i);
        }
        assertThat(isForgotten(first)).isTrue();
    }

    private WeakReference<Stream> recordedAndOver(MemoryUses uses, long handle) {
        Stream stream = clocks.next(0, handle);
        uses.recorded(stream, 4096);
        clocks.finished(clocks.upTo(0, handle));
        clocks.ended(0, handle);
        return new WeakReference<>(stream);
    }
}
