package io.cistern.pressure.situations;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;

/// A stream of one thread, and work on it whose result shows whether memory was the thread's own all the time.
///
/// Values travel from the host through every block and back. Each block is filled with a pattern of its own
/// around them, which is checked on the device right before the block is freed, in stream order: nobody waits for
/// that.
///
/// **Threads.** One.
final class DeviceWork implements AutoCloseable {
    private static final int DEVICE = 0;

    /// Longest row of values.
    static final int MAX_ITEMS = 64;

    private static final long VALUES_BYTES = MAX_ITEMS * (long) Long.BYTES;

    /// Smallest block.
    static final long MIN_BYTES = 2 * VALUES_BYTES;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final long stream;

    /// Pinned: the values going in, those coming out, and a counter of words that differ.
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

    /// Bytes of all blocks so far, live or not.
    long allocatedBytes() {
        return allocatedBytes;
    }

    /// Puts values into the first block.
    void begin(long byteSize, int pattern, long[] values) {
        MemorySegment.copy(values, 0, host, ValueLayout.JAVA_LONG, 0, values.length);
        long address = allocate(byteSize, pattern);
        driver.copies().toDevice(DEVICE, address, host, VALUES_BYTES, stream);
    }

    /// Takes one more block, and copies the values on to it.
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

    /// Checks and frees the block before the last, if there is one.
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

    /// Waits for the device and tells what the values became.
    long[] finish(int count) {
        driver.copies()
                .toHost(DEVICE, host.asSlice(VALUES_BYTES), blocks.element().address(), VALUES_BYTES, stream);
        driver.streams().synchronize(DEVICE, stream);
        return host.asSlice(VALUES_BYTES, count * (long) Long.BYTES).toArray(ValueLayout.JAVA_LONG);
    }

    /// Frees all, without waiting.
    void rollBack() {
        while (!blocks.isEmpty()) {
            free(blocks.pop());
        }
    }

    /// Words that were not what they were set to, of all blocks so far; waits for the device.
    long mismatches() {
        driver.streams().synchronize(DEVICE, stream);
        return host.get(ValueLayout.JAVA_LONG, 2 * VALUES_BYTES);
    }

    /// Frees all and ends the stream.
    @Override
    public void close() {
        rollBack();
        driver.streams().synchronize(DEVICE, stream);
        memory.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
        driver.memory().freeHost(DEVICE, host);
    }
}
