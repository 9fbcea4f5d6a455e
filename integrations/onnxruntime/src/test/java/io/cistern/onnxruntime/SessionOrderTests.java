package io.cistern.onnxruntime;

import static io.cistern.onnxruntime.OnnxFixture.DEVICE;
import static io.cistern.onnxruntime.OnnxFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.DriverCall;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Blocks are freed while work on them is queued. Whoever gets the memory next comes after that work.
class SessionOrderTests {
    private static final long CAPACITY = 16 * MIB;
    /// More than half of the device, so that the second block has memory of the first.
    private static final long BIG = 10 * MIB;
    private static final long BUSY_NANOS = 50_000_000;

    private enum Kind {
        SESSION,
        FOREIGN,
        UNTOLD
    }

    @TempDir
    private Path folder;

    private OnnxFixture onnx;

    @BeforeEach
    void open() {
        onnx = new OnnxFixture(folder, CAPACITY, "caching:reuse=wait");
    }

    @AfterEach
    void close() {
        onnx.close();
    }

    private long streamOf(Kind kind) {
        return kind == Kind.SESSION
                ? onnx.onnx.open(SessionSettings.named("s")).stream()
                        .orElseThrow()
                        .handle()
                : onnx.foreignStream();
    }

    private long allocate(Kind kind, long byteSize, long stream) {
        return kind == Kind.UNTOLD ? onnx.fake.allocate(byteSize) : onnx.fake.allocateOnStream(byteSize, stream);
    }

    @ParameterizedTest
    @CsvSource({
        "SESSION, SESSION",
        "SESSION, FOREIGN",
        "FOREIGN, SESSION",
        "FOREIGN, FOREIGN",
        "UNTOLD, FOREIGN",
        "FOREIGN, UNTOLD",
        "UNTOLD, UNTOLD",
        "SESSION, UNTOLD"
    })
    void theNextUserComesAfterTheQueuedWork(Kind first, Kind second) {
        long earlier = streamOf(first);
        long later = streamOf(second);
        long a = allocate(first, BIG, earlier);
        onnx.gpu.keepBusy(DEVICE, earlier, BUSY_NANOS);
        onnx.fill(a, 0xAA, BIG, earlier);
        onnx.fake.free(a);

        long b = allocate(second, BIG, later);
        onnx.fill(b, 0xBB, BIG, later);
        onnx.gpu.devices().synchronize(DEVICE);
        assertThat(onnx.holds(b, 0xBB, BIG, later)).isTrue();
        onnx.fake.free(b);
    }

    @Test
    void withoutTheOrderTheFirstUserWouldWriteLast() {
        long earlier = onnx.foreignStream();
        long later = onnx.foreignStream();
        long a = onnx.memory.allocate(BIG, DEVICE, earlier);
        onnx.gpu.keepBusy(DEVICE, earlier, BUSY_NANOS);
        onnx.fill(a, 0xAA, BIG, earlier);
        onnx.fill(a, 0xBB, BIG, later);
        onnx.gpu.devices().synchronize(DEVICE);
        assertThat(onnx.holds(a, 0xAA, BIG, later)).isTrue();
        onnx.memory.free(a, earlier);
    }

    private long streamCalls() {
        return onnx.gpu.calls().of(DriverCall.EVENT_RECORD) + onnx.gpu.calls().of(DriverCall.STREAM_WAIT_EVENT);
    }

    @Test
    void aSessionOnItsOwnStreamNeedsNoFences() {
        long stream = streamOf(Kind.SESSION);
        long before = streamCalls();
        for (int i = 0; i < 100; i++) {
            onnx.fake.free(onnx.fake.allocateOnStream(1000, stream));
        }
        assertThat(streamCalls()).isEqualTo(before);
    }

    @Test
    void aStreamThatEndedWithItsThreadIsNotTouchedAgain() throws Exception {
        List<Long> kept = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Thread thread = Thread.ofPlatform().start(() -> {
                long stream = onnx.foreignStream();
                onnx.fake.free(onnx.fake.allocateOnStream(MIB, stream));
                kept.add(onnx.fake.allocateOnStream(4096, stream));
                onnx.gpu.streams().synchronize(DEVICE, stream);
                onnx.gpu.streams().destroy(DEVICE, stream);
            });
            thread.join();
        }
        kept.forEach(onnx.fake::free);
        assertThat(onnx.onnx.lastFailure()).isEmpty();
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
    }

    @Test
    void aStreamThatEndedWithItsSessionIsNotTouchedAgain() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s").streams(SessionStreams.ONE_FOR_EACH_REQUEST));
        long stream = onnx.foreignStream();
        long output = session.call(() -> onnx.fake.allocateOnStream(MIB, stream));
        onnx.gpu.streams().destroy(DEVICE, stream);
        session.close();
        onnx.fake.free(output);
        assertThat(onnx.onnx.lastFailure()).isEmpty();
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
    }

    @Test
    void threadsThatJavaHasNeverSeenAreServed() {
        long[] streams = {onnx.foreignStream(), onnx.foreignStream(), onnx.foreignStream(), onnx.foreignStream()};
        assertThat(onnx.fake.serveOnNativeThreads(streams, 2000)).isZero();
        assertThat(onnx.onnx.figures().allocations()).isEqualTo(8000);
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
    }

    @Test
    void threadsNeverSeeEachOthersBytes() throws Exception {
        Callable<Integer> server = () -> serve(Thread.currentThread().threadId());
        try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
            List<Future<Integer>> wrong = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                wrong.add(pool.submit(server));
            }
            for (Future<Integer> each : wrong) {
                assertThat(each.get()).isZero();
            }
        }
    }

    /// Each round fills blocks, frees one that is still being filled, and looks at another.
    private int serve(long seed) {
        Random random = new Random(seed);
        long stream = onnx.foreignStream();
        int wrong = 0;
        for (int i = 0; i < 200; i++) {
            long byteSize = 4096L * (1 + random.nextInt(300));
            long dropped = onnx.fake.allocateOnStream(byteSize, stream);
            long kept = onnx.fake.allocateOnStream(byteSize, stream);
            int value = random.nextInt(256);
            onnx.gpu.keepBusy(DEVICE, stream, 10_000);
            onnx.fill(dropped, ~value, byteSize, stream);
            onnx.fake.free(dropped);
            onnx.fill(kept, value, byteSize, stream);
            wrong += onnx.holds(kept, value, byteSize, stream) ? 0 : 1;
            onnx.fake.free(kept);
        }
        return wrong;
    }
}
