package io.cistern.cli.replay;

import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Fills each block with a number of its own and looks, before the block is freed, whether all of it is still there:
/// two live blocks that overlap, or a block handed out before its last use was over, show as mismatches.
///
/// All of it happens on the device in stream order, so that nothing is delayed or ordered that would not be without
/// it. A block's whole words are filled and counted by a kernel. The one to three bytes behind them go through a word
/// of scratch memory, one for each stream: written from it, and for the check copied over the expected word, which is
/// then counted as a block of one word.
///
/// Memory map of the scratch range: mismatch counter (8 bytes), then a word for each stream.
final class ContentCheck implements BlockWork, AutoCloseable {
    private static final int COUNTER_BYTES = 8;

    private final CudaDriver driver;
    private final int device;
    private final long[] streams;
    private final MemoryKernels kernels;
    private final long scratch;

    /// Prepares checks of blocks on these streams.
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

    @Override
    public void allocated(int row, long address, long byteSize, long stream) {
        Copies copies = driver.copies();
        copies.fillWords(device, address, pattern(row), byteSize / 4, stream);
        if (byteSize % 4 != 0) {
            long word = scratchWord(stream);
            copies.fillWords(device, word, pattern(row), 1, stream);
            copies.onDevice(device, address + tailOffset(byteSize), word, byteSize % 4, stream);
        }
    }

    /// Another stream reads the block.
    @Override
    public void used(int row, long address, long byteSize, long stream) {
        freeing(row, address, byteSize, stream);
    }

    @Override
    public void freeing(int row, long address, long byteSize, long stream) {
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

    /// Words found changed so far; waits for the device.
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

    /// Another number for each row: the factor is odd, so no two of 2^32 are equal.
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
}
