package io.cistern.benchmarks.thresholds;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.Deque;

/// The operations of a studied program: allocate, enqueue kernels, free, wait, pause.
final class StudiedProgram {
    private final StudiedGpu on;
    private final DeviceMemory memory;
    private final Allocator allocator;
    private final long stream;
    private long liveBytes;

    /// The peak of live bytes since the last synchronisation; no pool can give any of it back before
    /// the next one.
    private long usedBytes;

    private long refused;

    /// A live block.
    record Block(long address, long byteSize) {}

    StudiedProgram(StudiedGpu on, DeviceMemory memory, String spec) {
        this.on = on;
        this.memory = memory;
        this.allocator = memory.open(spec);
        stream = on.gpu().streams().create(StudiedGpu.DEVICE);
    }

    Allocator allocator() {
        return allocator;
    }

    long usedBytes() {
        return usedBytes;
    }

    long refused() {
        return refused;
    }

    /// Creates another stream besides the program's own.
    long newStream() {
        return on.gpu().streams().create(StudiedGpu.DEVICE);
    }

    void end(long ended) {
        memory.streamClosing(StudiedGpu.DEVICE, ended);
        on.gpu().streams().destroy(StudiedGpu.DEVICE, ended);
    }

    /// Allocates a block on the program's stream and uses it in a kernel.
    Block use(long byteSize, long kernelNanos) {
        Block block = allocate(byteSize, stream);
        on.kernel(kernelNanos, stream);
        return block;
    }

    /// Allocates a block on a stream.
    ///
    /// @throws DeviceOutOfMemoryException if the device is full; also counts the refusal
    Block allocate(long byteSize, long onStream) {
        on.called();
        try {
            long address = allocator.allocate(byteSize, StudiedGpu.DEVICE, onStream);
            liveBytes += byteSize;
            usedBytes = Math.max(usedBytes, liveBytes);
            return new Block(address, byteSize);
        } catch (DeviceOutOfMemoryException full) {
            refused++;
            throw full;
        } finally {
            on.look();
        }
    }

    void free(Block block) {
        free(block, stream);
    }

    void free(Block block, long onStream) {
        on.called();
        memory.free(block.address(), onStream);
        liveBytes -= block.byteSize();
        on.look();
    }

    /// Frees the latest block first.
    void freeAll(Deque<Block> blocks) {
        while (!blocks.isEmpty()) {
            free(blocks.removeLast());
        }
    }

    /// Enqueues a kernel that uses no block.
    void kernel(long nanos) {
        kernel(nanos, stream);
    }

    void kernel(long nanos, long onStream) {
        on.kernel(nanos, onStream);
    }

    /// Waits for the program's stream.
    void synchronize() {
        synchronize(stream);
    }

    void synchronize(long onStream) {
        on.look();
        on.gpu().streams().synchronize(StudiedGpu.DEVICE, onStream);
        usedBytes = liveBytes;
        on.look();
    }

    /// Leaves the GPU alone for a while.
    void pause(long nanos) {
        on.gpu().passTime(nanos);
        on.look();
    }

    /// Trims the allocator to at most `keepBytes`; `adaptive` then also gives back memory that it
    /// no longer holds.
    void trim(long keepBytes) {
        allocator.trim(StudiedGpu.DEVICE, keepBytes, TrimMode.WITHOUT_WAITING);
        on.look();
    }

    void close() {
        allocator.close();
        memory.close();
    }
}
