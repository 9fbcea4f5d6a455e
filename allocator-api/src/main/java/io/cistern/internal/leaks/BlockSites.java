package io.cistern.internal.leaks;

import io.cistern.diagnostics.LeakLevel;
import io.cistern.internal.names.CallStack;
import io.cistern.internal.names.ThreadNames;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jspecify.annotations.Nullable;

/// Remembers for live blocks, or for a sample of them, which code allocated them.
///
/// **Idea.** The owner table knows which blocks are alive; this class keeps, by address, only what that
/// table lacks. Recording is a layer around the allocator, so it costs nothing when it is off. A record is
/// added after the allocation and removed before the free, since the allocator may hand the address out
/// again at once.
///
/// **Sampling.** A thread counts down bytes in a cell of its own (threads may share a cell, and the count
/// is then a little off, which does no harm). A free must find out whether its block was sampled. A counter
/// for each of 8192 address hashes rules this out for most frees, with one read of rarely modified memory.
///
/// **Threads.** Any. Nothing here throws: a failure to record loses the record.
public final class BlockSites {
    /// With sampling, a thread records one block per this many bytes.
    static final long SAMPLE_BYTES = 64L << 20;

    /// The least bytes that a block counts as: one of 256 small blocks is recorded.
    static final long MIN_BYTES = SAMPLE_BYTES / 256;

    private static final int CELLS = 64;

    /// Longs between cells: a cache line.
    private static final int CELL_STRIDE = 8;

    private static final int HASHES = 8192;

    private final LeakLevel level;
    private final Map<Long, Site> sites = new ConcurrentHashMap<>();
    private final long[] untilSample = new long[CELLS * CELL_STRIDE];
    private final AtomicIntegerArray sampled = new AtomicIntegerArray(HASHES);

    public BlockSites(LeakLevel level) {
        this.level = level;
    }

    /// Returns whether anything is recorded.
    public boolean isOn() {
        return level != LeakLevel.OFF;
    }

    public boolean watchesBuffers() {
        return level == LeakLevel.SITES || level == LeakLevel.ALL;
    }

    /// Returns the allocator with this layer around it; the allocator itself if nothing is recorded.
    public DeviceAllocator around(DeviceAllocator allocator) {
        return isOn() ? new Recording(allocator) : allocator;
    }

    public DeviceAllocator unrecorded(DeviceAllocator allocator) {
        return allocator instanceof Recording recording ? recording.upstream() : allocator;
    }

    @Nullable
    Site find(long address) {
        return sites.get(address);
    }

    @SuppressWarnings("CatchingUnchecked") // losing a record is better than losing the block
    private void allocated(long address, long byteSize, long stream) {
        if (level == LeakLevel.SAMPLED && !isSample(byteSize)) {
            return;
        }
        Long key = null;
        try {
            key = address;
            sites.put(key, new Site(level == LeakLevel.ALL, stream));
            if (level == LeakLevel.SAMPLED) {
                sampled.incrementAndGet(hash(address));
            }
        } catch (RuntimeException | Error lost) {
            if (key != null) {
                sites.remove(key);
            }
        }
    }

    private void freeing(long address) {
        if (level != LeakLevel.SAMPLED) {
            sites.remove(address);
        } else if (sampled.getOpaque(hash(address)) != 0 && sites.remove(address) != null) {
            sampled.decrementAndGet(hash(address));
        }
    }

    private boolean isSample(long byteSize) {
        int cell = ((int) Thread.currentThread().threadId() & (CELLS - 1)) * CELL_STRIDE;
        long left = untilSample[cell] - Math.max(byteSize, MIN_BYTES);
        untilSample[cell] = left <= 0 ? SAMPLE_BYTES : left;
        return left <= 0;
    }

    private static int hash(long address) {
        return (int) ((address * 0x9E37_79B9_7F4A_7C15L) >>> 51);
    }

    /// Records which code asked for a block, when, and for which stream.
    static final class Site {
        private static final int FEW_FRAMES = 8;

        final long stream;
        final Optional<String> thread;

        /// Whether the buffer of the block was dropped.
        volatile boolean unreachable;

        private final long madeAtNanos = System.nanoTime();
        private final CallStack stack;

        /// @param whole whether to keep the whole stack and the thread's name
        private Site(boolean whole, long stream) {
            this.stream = stream;
            this.stack = new CallStack(whole ? Integer.MAX_VALUE : FEW_FRAMES);
            this.thread = whole ? Optional.of(ThreadNames.ofCaller()) : Optional.empty();
        }

        Duration age() {
            return Duration.ofNanos(System.nanoTime() - madeAtNanos);
        }

        List<StackTraceElement> frames() {
            return stack.frames();
        }
    }

    /// The layer. It replaces the allocator everywhere, so it also closes the allocator.
    private final class Recording extends AllocatorAdaptor {
        Recording(DeviceAllocator allocator) {
            super(allocator);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            long address = upstream().allocate(byteSize, device, stream);
            allocated(address, byteSize, stream);
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            try {
                freeing(address);
            } finally { // losing a record is better than losing the block
                upstream().free(address, byteSize, device, stream);
            }
        }

        @Override
        public void close() {
            upstream().close();
        }
    }
}
