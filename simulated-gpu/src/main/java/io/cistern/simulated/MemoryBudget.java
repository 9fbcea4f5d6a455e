package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// The physical memory of a device, and what the system would have this process use of it. Invariant:
/// `0 ≤ used ≤ total`. Those who listen are told once each time `used` rises above the budget, or that falls
/// below `used`.
final class MemoryBudget {
    private final long totalBytes;
    private long usedBytes;
    private long budgetBytes = Long.MAX_VALUE;
    private long lastListener;
    private final Map<Long, LongConsumer> listeners = new LinkedHashMap<>();

    /// Managed memory with pages here, what was used longest ago first.
    private final Set<ManagedContents> managed = new LinkedHashSet<>();

    MemoryBudget(long totalBytes, long contextBytes) {
        this.totalBytes = totalBytes;
        this.usedBytes = contextBytes;
    }

    long totalBytes() {
        return totalBytes;
    }

    long freeBytes() {
        return totalBytes - usedBytes;
    }

    /// Moves managed memory to the host until so much is free, as far as there is some: what was used last goes
    /// last.
    ///
    /// @param user whose own pages stay; null for none
    void makeRoom(long byteSize, @Nullable ManagedContents user) {
        for (ManagedContents each : List.copyOf(managed)) {
            if (each != user && byteSize > freeBytes()) {
                each.evict(byteSize - freeBytes());
            }
        }
    }

    /// Managed memory with pages here was used.
    void usedLast(ManagedContents contents) {
        managed.remove(contents);
        managed.add(contents);
    }

    /// Managed memory has no pages here any more.
    void forget(ManagedContents contents) {
        managed.remove(contents);
    }

    void take(long byteSize) {
        makeRoom(byteSize, null);
        if (byteSize > freeBytes()) {
            throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
        }
        boolean before = isOver();
        usedBytes += byteSize;
        tell(before);
    }

    void give(long byteSize) {
        usedBytes -= byteSize;
    }

    /// Sets what the process is to use at most.
    void set(long byteSize) {
        boolean before = isOver();
        budgetBytes = byteSize;
        tell(before);
    }

    /// Has a listener told.
    ///
    /// @return what [#unlisten] takes
    long listen(LongConsumer whenOver) {
        listeners.put(++lastListener, whenOver);
        return lastListener;
    }

    void unlisten(long listener) {
        if (listeners.remove(listener) == null) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }

    private boolean isOver() {
        return usedBytes > budgetBytes;
    }

    /// As the driver does, on a thread of its own.
    private void tell(boolean before) {
        if (isOver() && !before && !listeners.isEmpty()) {
            long over = usedBytes - budgetBytes;
            List<LongConsumer> all = new ArrayList<>(listeners.values());
            Thread.ofPlatform()
                    .daemon()
                    .name("simulated-gpu-budget")
                    .start(() -> all.forEach(each -> tell(each, over)));
        }
    }

    private static void tell(LongConsumer listener, long over) {
        try {
            listener.accept(over);
        } catch (RuntimeException swallowed) {
            // The contract of the driver's callbacks: what they throw is swallowed.
        }
    }
}
