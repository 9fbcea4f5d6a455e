package io.cistern.adaptors;

import io.cistern.internal.names.ThreadNames;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/// Remembers the code that allocated each live block. Each allocation walks the stack.
public final class TrackingAllocator extends AllocatorAdaptor {
    /// The number of stack frames remembered by default: enough to see the callers, few enough to keep for
    /// every block.
    public static final int DEFAULT_FRAMES = 8;

    private static final StackWalker STACK = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

    private final int frames;

    /// Exactly the allocated blocks whose free has not begun.
    private final ConcurrentMap<Long, TrackedBlock> live = new ConcurrentHashMap<>();

    /// Wraps an allocator, and remembers [#DEFAULT_FRAMES] stack frames of each allocation.
    public TrackingAllocator(DeviceAllocator upstream) {
        this(upstream, DEFAULT_FRAMES);
    }

    /// Wraps an allocator.
    ///
    /// @param frames how many stack frames of each allocation to remember, at least 0
    /// @throws IllegalArgumentException if `frames` is negative
    public TrackingAllocator(DeviceAllocator upstream, int frames) {
        super(upstream);
        if (frames < 0) {
            throw new IllegalArgumentException("frames must be at least 0, not " + frames);
        }
        this.frames = frames;
    }

    /// Returns a snapshot of the live blocks, the oldest first.
    public List<TrackedBlock> liveBlocks() {
        return live.values().stream()
                .sorted(Comparator.comparingLong(TrackedBlock::nanoTime).thenComparingLong(TrackedBlock::address))
                .toList();
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = upstream().allocate(byteSize, device, stream);
        try {
            String thread = ThreadNames.ofCaller();
            live.put(address, new TrackedBlock(address, byteSize, device, stream, thread, System.nanoTime(), site()));
        } catch (Throwable full) {
            upstream().free(address, byteSize, device, stream);
            throw full;
        }
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        live.remove(address);
        upstream().free(address, byteSize, device, stream);
    }

    private List<StackWalker.StackFrame> site() {
        return STACK.walk(stack -> stack.dropWhile(frame -> isOurs(frame.getDeclaringClass()))
                .limit(frames)
                .toList());
    }

    private static boolean isOurs(Class<?> type) {
        return DeviceAllocator.class.isAssignableFrom(type)
                || type.getPackageName().equals("io.cistern")
                || type.getPackageName().startsWith("io.cistern.internal.");
    }
}
