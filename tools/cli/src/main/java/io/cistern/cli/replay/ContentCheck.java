package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.IntStream;

/// Fills each block with its own number and checks before the block is freed that all of it is still there.
/// Two live blocks that overlap show up as mismatches, and so does a block that was handed out before its last
/// use was over.
///
/// Everything happens on the device in stream order, so the checks add no delays or ordering. A kernel fills
/// and counts a block's whole words. The one to three bytes after them go through a word of scratch memory, one
/// for each stream: they are written from that word, and the check copies them over the expected word and
/// counts it as a block of one word.
///
/// Memory map of the scratch range: mismatch counter (8 bytes), then a word for each stream.
final class ContentCheck implements BlockWork, AutoCloseable {
    /// Its memory on the device: one of the pieces in which the driver hands memory out.
    static final long DEVICE_BYTES = 2 << 20;

    private static final int COUNTER_BYTES = 8;

    private final CudaDriver driver;
    private final int device;
    private final long[] streams;
    private final MemoryKernels kernels;
    private final long scratch;

    /// Prepares checks of blocks on the given streams; allocates the scratch memory.
    ContentCheck(CudaDriver driver, int device, long[] streams) {
        this.driver = driver;
        this.device = device;
        this.streams = streams.clone();
        kernels = MemoryKernels.load(driver, device);
        long byteSize = COUNTER_BYTES + 4L * streams.length;
        scratch = driver.memory().allocate(device, byteSize);
        driver.copies().fillBytes(device, scratch, (byte) 0, byteSize, streams[0]);
        driver.streams().synchronize(device, streams[0]);
    }

    /// Fills a new block; checks any other on the stream that reads it.
    @Override
    public void play(byte op, int row, long address, long byteSize, long stream) {
        if (op == Trace.ALLOCATE) {
            fill(row, address, byteSize, stream);
        } else {
            check(row, address, byteSize, stream);
        }
    }

    private void fill(int row, long address, long byteSize, long stream) {
        Copies copies = driver.copies();
        copies.fillWords(device, address, pattern(row), byteSize / 4, stream);
        if (byteSize % 4 != 0) {
            long word = scratchWord(stream);
            copies.fillWords(device, word, pattern(row), 1, stream);
            copies.onDevice(device, address + tailOffset(byteSize), word, byteSize % 4, stream);
        }
    }

    private void check(int row, long address, long byteSize, long stream) {
        if (byteSize >= 4) {
            kernels.countMismatches(address, byteSize / 4, pattern(row), scratch, stream);
        }
        if (byteSize % 4 != 0) {
            long word = scratchWord(stream);
            driver.copies().fillWords(device, word, pattern(row), 1, stream);
            driver.copies().onDevice(device, word, address + tailOffset(byteSize), byteSize % 4, stream);
            kernels.countMismatches(word, 1, pattern(row), scratch, stream);
        }
    }

    /// Returns how many words were found changed so far; waits for the device.
    long mismatches() {
        driver.devices().synchronize(device);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(ValueLayout.JAVA_LONG);
            driver.copies().toHost(device, count, scratch, COUNTER_BYTES, streams[0]);
            driver.streams().synchronize(device, streams[0]);
            return count.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    @Override
    public void close() {
        driver.memory().free(device, scratch);
        kernels.close();
    }

    /// Returns a different number for each row: the factor is odd, so multiplication permutes the ints.
    private static int pattern(int row) {
        return (row + 1) * 0x9e3779b9;
    }

    private static long tailOffset(long byteSize) {
        return byteSize & ~3L;
    }

    private long scratchWord(long stream) {
        int index = 0;
        while (streams[index] != stream) {
            index++;
        }
        return scratch + COUNTER_BYTES + 4L * index;
    }

    /// Checks the contents of blocks on all devices of a replay, by a [ContentCheck] each.
    record OfAll(List<ContentCheck> byDevice) implements AutoCloseable {
        static OfAll on(ReplayStreams streams) {
            return new OfAll(IntStream.range(0, streams.ordinals().length)
                    .mapToObj(device ->
                            new ContentCheck(streams.driver(), streams.ordinals()[device], streams.handlesOn(device)))
                    .toList());
        }

        /// Returns how many words were found changed so far; waits for the devices.
        long mismatches() {
            return byDevice.stream().mapToLong(ContentCheck::mismatches).sum();
        }

        @Override
        public void close() {
            byDevice.forEach(ContentCheck::close);
        }
    }
}
