package io.cistern.suites.pressure;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;

/// Does work on a stream of one thread, whose result shows whether its memory was its own all the time.
///
/// Values travel from the host through every block and back. Around them, each block is filled with its own
/// pattern. The device checks the pattern right before the block is freed, in stream order, so no thread waits
/// for the check.
///
/// **Threads.** One.
final class DeviceWork implements AutoCloseable {
    private static final int DEVICE = 0;

    /// The longest row of values.
    static final int MAX_ITEMS = 64;

    private static final long VALUES_BYTES = MAX_ITEMS * (long) Long.BYTES;

    /// The smallest block.
    static final long MIN_BYTES = 2 * VALUES_BYTES;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final long stream;

    /// Pinned: the values going in, the values coming out, and a counter of words that differ.
    private final MemorySegment host;

    private final Deque<Block> blocks = new ArrayDeque<>();

    private long allocatedBytes;

    private record Block(long address, long byteSize, int pattern) {}

    DeviceWork(DeviceMemory memory, MemoryKernels kernels) {
        this.driver = memory.driver();
        this.memory = memory;
        this.kernels = kernels;
        stream = driver.streams().create(DEVICE);
        host = driver.memory()
                .allocateHost(DEVICE, 2 * VALUES_BYTES + Long.BYTES)
                .fill((byte) 0);
    }

    /// Returns the bytes of all blocks so far, live or not.
    long allocatedBytes() {
        return allocatedBytes;
    }

    /// Copies values into a first block.
    void begin(long byteSize, int pattern, long[] values) {
        MemorySegment.copy(values, 0, host, ValueLayout.JAVA_LONG, 0, values.length);
        long address = allocate(byteSize, pattern);
        driver.copies().toDevice(DEVICE, address, host, VALUES_BYTES, stream);
    }

    /// Allocates one more block, and copies the values to it.
    void extend(long byteSize, int pattern) {
        long former = blocks.element().address();
        long address = allocate(byteSize, pattern);
        driver.copies().onDevice(DEVICE, address, former, VALUES_BYTES, stream);
    }

    private long allocate(long byteSize, int pattern) {
        long size = Math.max(MIN_BYTES, byteSize) & -Integer.BYTES;
        long address = memory.allocate(size, DEVICE, stream);
        allocatedBytes += size;
        blocks.push(new Block(address, size, pattern));
        driver.copies().fillWords(DEVICE, address, pattern, size / Integer.BYTES, stream);
        return address;
    }

    /// Checks and frees the block before the last one, if there is one.
    void freeOlder() {
        if (blocks.size() > 1) {
            Block last = blocks.pop();
            free(blocks.pop());
            blocks.push(last);
        }
    }

    private void free(Block block) {
        kernels.countMismatches(
                block.address() + VALUES_BYTES,
                (block.byteSize() - VALUES_BYTES) / Integer.BYTES,
                block.pattern(),
                host.address() + 2 * VALUES_BYTES,
                stream);
        memory.free(block.address(), stream);
    }

    /// Waits for the device and returns the values.
    long[] finish(int count) {
        driver.copies()
                .toHost(DEVICE, host.asSlice(VALUES_BYTES), blocks.element().address(), VALUES_BYTES, stream);
        driver.streams().synchronize(DEVICE, stream);
        return host.asSlice(VALUES_BYTES, count * (long) Long.BYTES).toArray(ValueLayout.JAVA_LONG);
    }

    /// Frees all blocks, without waiting.
    void rollBack() {
        while (!blocks.isEmpty()) {
            free(blocks.pop());
        }
    }

    /// Waits for the device, and returns how many words of all blocks so far differ from their pattern.
    long mismatches() {
        driver.streams().synchronize(DEVICE, stream);
        return host.get(ValueLayout.JAVA_LONG, 2 * VALUES_BYTES);
    }

    /// Frees all blocks and destroys the stream.
    @Override
    public void close() {
        rollBack();
        driver.streams().synchronize(DEVICE, stream);
        memory.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
        driver.memory().freeHost(DEVICE, host);
    }
}
