package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.Patterns;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// Runs short random programs on a few streams. A kernel holds some of the streams while memory is freed, taken
/// by other streams and written again. Each program keeps the rules of stream order. So if the contents of a
/// block differ when its stream gets to the check, the block was handed out too early.
///
/// A *scenario* is drawn from its seed:
///
/// 1. Allocate blocks on a stream, and write them there.
/// 2. Hand some over to another stream by an event; that stream checks and writes them.
/// 3. Check and free them, on the stream that had them last, or on their own, which waits for that one or
///    has its use recorded.
/// 4. Meanwhile hold and release streams, trim, and replace streams.
/// 5. At the end release all streams; every check must have found the written contents.
///
/// The allocator stays the same from one scenario to the next, so the effect of a seed may
/// depend on earlier scenarios.
///
/// **Threads.** One thread.
final class Scenarios implements AutoCloseable {
    private static final int STREAMS = 4;
    private static final int STEPS = 40;
    private static final int MAX_LIVE = 24;
    /// A few pages of the smallest kind, so that blocks share pages, fill them, or span them.
    private static final long LARGEST = 8L << 20;

    /// Far longer than a scenario takes.
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

    /// Prepares scenarios on the current allocator.
    ///
    /// @param freesWithoutWaiting false for an allocator that frees with `cuMemFree`, which waits for running
    ///     work; such an allocator does not free while a stream is held
    Scenarios(CudaDriver driver, DeviceMemory memory, boolean freesWithoutWaiting) {
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

    /// Does once everything that scenarios do. The driver loads some of its own kernels at their first use,
    /// which may wait for the device; that must not happen while a stream is held.
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

    /// Runs one scenario.
    ///
    /// @throws AssertionError if contents were wrong, or the host waited for a held stream
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

    /// Hands a block over to another stream, after its own.
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

    /// Destroys a stream without blocks, whose work may still run, and creates a new one in its place.
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
