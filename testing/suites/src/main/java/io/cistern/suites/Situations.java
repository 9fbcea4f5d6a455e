package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.Patterns;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// Short random programs on a few streams, some of which are held by a kernel while memory is freed, taken by
/// others and written again. Each program keeps the rules of stream order; so a block whose contents differ when
/// its stream gets to the check was handed out too early.
///
/// One *situation*, from its seed:
///
/// 1. Blocks are allocated on a stream, and written there.
/// 2. Some are handed to another stream by an event; that one checks and writes them.
/// 3. They are checked and freed on the stream that had them last, or on their own, which waited for that one.
/// 4. Meanwhile streams are held and let go, trims run, and streams end and come again.
/// 5. In the end all streams go on, and every check must have found what was written.
///
/// The allocator goes on from one situation to the next, so what a seed does may depend on those before it.
///
/// **Threads.** One.
final class Situations implements AutoCloseable {
    private static final int STREAMS = 4;
    private static final int STEPS = 40;
    private static final int MAX_LIVE = 24;
    /// A few pages of the smallest kind, so that blocks share pages, fill them, and span them.
    private static final long LARGEST = 8L << 20;

    /// A situation takes a few milliseconds.
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Patterns patterns;
    private final HeldStreams held;
    private final long[] streams = new long[STREAMS];
    private final long event;
    private final HangWatch watch;
    private final List<Block> live = new ArrayList<>();
    private SplittableRandom random = new SplittableRandom(0);
    private int contents;

    private final boolean freesWithoutWaiting;

    private record Block(long address, long byteSize, int contents, long stream) {}

    /// Over the current allocator.
    ///
    /// @param freesWithoutWaiting false for an allocator that gives memory back by `cuMemFree`, which waits for
    ///     running work: it is not made to while a stream is held
    Situations(CudaDriver driver, DeviceMemory memory, boolean freesWithoutWaiting) {
        this.driver = driver;
        this.memory = memory;
        this.freesWithoutWaiting = freesWithoutWaiting;
        patterns = new Patterns(driver, 0);
        held = new HeldStreams(driver, 0);
        event = driver.events().create(0);
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = driver.streams().create(0);
        }
        watch = new HangWatch(PATIENCE, held::giveUp);
        rehearse();
    }

    /// Does once what situations do. The driver loads some of its own kernels when they are first needed, which
    /// may wait for the device: that must not be while a stream is held.
    private void rehearse() {
        for (long byteSize : new long[] {7, LARGEST - 1}) {
            Block block = allocate(byteSize, streams[0]);
            verify(block);
            memory.free(block.address, handOver(block));
        }
        held.hold(streams[0]);
        held.releaseAll();
        patterns.mismatches();
    }

    /// Runs one situation.
    ///
    /// @throws AssertionError if contents were spoilt, or the host waited for a stream that is held
    void run(long seed) {
        random = new SplittableRandom(seed);
        try {
            watch.run(() -> {
                for (int step = 0; step < STEPS; step++) {
                    step();
                }
                while (!live.isEmpty()) {
                    free();
                }
            });
            held.releaseAll();
            List<String> spoilt = patterns.mismatches();
            if (!spoilt.isEmpty()) {
                throw new AssertionError("contents were spoilt: " + spoilt);
            }
        } catch (RuntimeException | AssertionError failure) {
            held.releaseAll();
            throw failure;
        }
    }

    private void step() {
        int dice = random.nextInt(100);
        if (dice < 45 && live.size() < MAX_LIVE) {
            allocate();
        } else if (dice < 80) {
            free();
        } else if (dice < 88) {
            held.hold(stream());
        } else if (dice < 96) {
            held.release(stream());
        } else if (dice < 98) {
            trim();
        } else {
            replaceStream(random.nextInt(STREAMS));
        }
    }

    private void trim() {
        if (freesWithoutWaiting || !held.any()) {
            memory.current(0).trim(0, random.nextLong(64L << 20), TrimMode.WITHOUT_WAITING);
        }
    }

    private void allocate() {
        long byteSize = 4 + (long) Math.pow(2, random.nextDouble(63 - Long.numberOfLeadingZeros(LARGEST)));
        live.add(allocate(byteSize, stream()));
    }

    private Block allocate(long byteSize, long stream) {
        Block block = new Block(memory.allocate(byteSize, 0, stream), byteSize, ++contents, stream);
        patterns.write(block.address, byteSize, block.contents, stream);
        return block;
    }

    private void verify(Block block) {
        patterns.verify(block.address, block.byteSize, block.contents, block.stream);
    }

    private void free() {
        if (live.isEmpty()) {
            return;
        }
        Block block = live.remove(random.nextInt(live.size()));
        verify(block);
        long last = random.nextInt(3) == 0 ? handOver(block) : block.stream;
        memory.free(block.address, last);
    }

    /// Another stream has the block, after its own.
    ///
    /// @return the stream to free it on
    private long handOver(Block block) {
        long other = stream();
        follow(other, block.stream);
        patterns.write(block.address, block.byteSize, ++contents, other);
        patterns.verify(block.address, block.byteSize, contents, other);
        return switch (random.nextInt(3)) {
            case 0 -> other;
            case 1 -> {
                follow(block.stream, other);
                yield block.stream;
            }
            default -> {
                memory.recordUse(block.address, other);
                yield block.stream;
            }
        };
    }

    private void follow(long later, long earlier) {
        driver.events().record(0, event, earlier);
        driver.streams().await(0, later, event);
    }

    /// A stream without blocks ends, what it has to do being done in its own time, and a new one takes its place.
    private void replaceStream(int index) {
        long stream = streams[index];
        if (!freesWithoutWaiting || held.holds(stream) || live.stream().anyMatch(block -> block.stream == stream)) {
            return;
        }
        memory.streamClosing(0, stream);
        driver.streams().destroy(0, stream);
        streams[index] = driver.streams().create(0);
    }

    private long stream() {
        return streams[random.nextInt(STREAMS)];
    }

    @Override
    public void close() {
        watch.close();
        held.close();
        patterns.close();
        driver.events().destroy(0, event);
        for (long stream : streams) {
            memory.streamClosing(0, stream);
            driver.streams().destroy(0, stream);
        }
    }
}
