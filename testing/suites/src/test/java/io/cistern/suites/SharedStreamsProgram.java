package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.Patterns;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentNavigableMap;

/// Runs one thread's part: random allocations and frees on streams that all threads share and on one of its
/// own, which it sometimes replaces; hand-overs to other streams; trims. No two live blocks may overlap. The
/// contents of every eighth block are checked.
///
/// Sizes are spread evenly over their powers of two.
final class SharedStreamsProgram implements Runnable {
    private static final int MAX_LIVE = 200;
    private static final long LARGEST = 32L << 20;
    private static final int CHECKED = 8;
    private static final int PERCENT = 100;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Patterns patterns;
    private final ConcurrentNavigableMap<Long, Long> ends;
    private final SplittableRandom random;
    private final int operations;
    private final long mostBytes;
    private final long[] streams;
    private final long event;
    private final List<Block> live = new ArrayList<>();
    private long liveBytes;
    private int contents;

    private record Block(long address, long byteSize, int contents, long stream) {
        boolean checked() {
            return contents % CHECKED == 0;
        }
    }

    /// Creates a thread's program.
    ///
    /// @param ends the end of each live block of all threads, by its start
    /// @param shared streams that all threads use
    /// @param mostBytes the limit of this thread's live bytes
    SharedStreamsProgram(
            CudaDriver driver,
            DeviceMemory memory,
            Patterns patterns,
            ConcurrentNavigableMap<Long, Long> ends,
            long[] shared,
            long seed,
            int operations,
            long mostBytes) {
        this.driver = driver;
        this.memory = memory;
        this.patterns = patterns;
        this.ends = ends;
        this.operations = operations;
        this.mostBytes = mostBytes;
        random = new SplittableRandom(seed);
        contents = random.nextInt(1 << 20) * CHECKED;
        event = driver.events().create(0);
        streams = Arrays.copyOf(shared, shared.length + 1);
        streams[shared.length] = driver.streams().create(0);
    }

    @Override
    public void run() {
        for (int i = 0; i < operations; i++) {
            step();
        }
        finish();
    }

    /// Frees all that is live, and ends the thread's own stream.
    void finish() {
        while (!live.isEmpty()) {
            free();
        }
        endOwnStream();
        driver.events().destroy(0, event);
    }

    /// Does one random operation.
    ///
    /// @throws DeviceOutOfMemoryException if it is refused although this thread holds nothing
    void step() {
        int dice = random.nextInt(PERCENT * PERCENT);
        if (dice == 0) {
            memory.current(0).trim(0, random.nextLong(mostBytes), TrimMode.WITHOUT_WAITING);
        } else if (dice < 10) {
            replaceOwnStream();
        } else if (dice % PERCENT < 52 && live.size() < MAX_LIVE && liveBytes < mostBytes) {
            allocate();
        } else if (!live.isEmpty()) {
            free();
        }
    }

    private void allocate() {
        long byteSize = 4 + (long) Math.pow(2, random.nextDouble(63 - Long.numberOfLeadingZeros(LARGEST)));
        long stream = streams[random.nextInt(streams.length)];
        try {
            Block block = new Block(memory.allocate(byteSize, 0, stream), byteSize, ++contents, stream);
            enter(block);
            if (block.checked()) {
                patterns.write(block.address, byteSize, block.contents, stream);
            }
            live.add(block);
            liveBytes += byteSize;
        } catch (DeviceOutOfMemoryException full) {
            if (live.isEmpty()) {
                throw full;
            }
            free();
        }
    }

    private void enter(Block block) {
        long end = block.address + block.byteSize;
        Map.Entry<Long, Long> below = ends.lowerEntry(end);
        if (below != null && below.getValue() > block.address) {
            throw new AssertionError("%s overlaps the live block that begins at 0x%x and ends at 0x%x"
                    .formatted(block, below.getKey(), below.getValue()));
        }
        ends.put(block.address, end);
    }

    private void free() {
        Block block = live.remove(random.nextInt(live.size()));
        liveBytes -= block.byteSize;
        if (block.checked()) {
            patterns.verify(block.address, block.byteSize, block.contents, block.stream);
        }
        long last = random.nextInt(8) == 0 ? handOver(block) : block.stream;
        ends.remove(block.address);
        memory.free(block.address, last);
    }

    /// @return the stream to free it on
    private long handOver(Block block) {
        long other = streams[random.nextInt(streams.length)];
        driver.events().record(0, event, block.stream);
        driver.streams().await(0, other, event);
        if (block.checked()) {
            patterns.write(block.address, block.byteSize, ++contents, other);
            patterns.verify(block.address, block.byteSize, contents, other);
        }
        if (random.nextBoolean()) {
            return other;
        }
        memory.recordUse(block.address, other);
        return block.stream;
    }

    private void replaceOwnStream() {
        long own = streams[streams.length - 1];
        while (live.stream().anyMatch(block -> block.stream == own)) {
            free();
        }
        endOwnStream();
        streams[streams.length - 1] = driver.streams().create(0);
    }

    private void endOwnStream() {
        long own = streams[streams.length - 1];
        memory.streamClosing(0, own);
        driver.streams().destroy(0, own);
    }
}
