package io.cistern.simulated.internal.memory;

import io.cistern.cuda.CudaResult;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// The physical memory of a device, and the budget that the system grants this process. Invariant: `0 ≤ used ≤
/// total`. Some of the free memory may be [held back][#holdBack]. Listeners are notified once each time that `used`
/// rises above the budget, or the budget falls below `used`.
public final class MemoryBudget {
    private final long totalBytes;
    private long usedBytes;
    private long heldBackBytes;
    private long budgetBytes = Long.MAX_VALUE;
    private long lastListener;
    private final Map<Long, LongConsumer> listeners = new LinkedHashMap<>();

    /// Managed memory with pages here, the least recently used first.
    private final Set<ManagedContents> managed = new LinkedHashSet<>();

    public MemoryBudget(long totalBytes, long contextBytes) {
        this.totalBytes = totalBytes;
        this.usedBytes = contextBytes;
    }

    public long totalBytes() {
        return totalBytes;
    }

    public long freeBytes() {
        return totalBytes - usedBytes;
    }

    public boolean has(long byteSize) {
        return byteSize <= freeBytes() - heldBackBytes;
    }

    /// Holds back bytes: they count as free, but can't be allocated.
    public void holdBack(long byteSize) {
        heldBackBytes = byteSize;
    }

    /// Moves managed memory to the host, the least recently used first, until this much is free or none is
    /// left.
    ///
    /// @param user the memory whose own pages stay; null for none
    public void makeRoom(long byteSize, @Nullable ManagedContents user) {
        for (ManagedContents each : List.copyOf(managed)) {
            if (each != user && !has(byteSize)) {
                each.evict(byteSize + heldBackBytes - freeBytes());
            }
        }
    }

    void usedLast(ManagedContents contents) {
        managed.remove(contents);
        managed.add(contents);
    }

    void forget(ManagedContents contents) {
        managed.remove(contents);
    }

    void take(long byteSize) {
        makeRoom(byteSize, null);
        DriverFailure.failIf(!has(byteSize), CudaResult.OUT_OF_MEMORY);
        boolean before = isOver();
        usedBytes += byteSize;
        tell(before);
    }

    void give(long byteSize) {
        usedBytes -= byteSize;
    }

    public void set(long byteSize) {
        boolean before = isOver();
        budgetBytes = byteSize;
        tell(before);
    }

    public long listen(LongConsumer whenOver) {
        listeners.put(++lastListener, whenOver);
        return lastListener;
    }

    public void unlisten(long listener) {
        DriverFailure.failIf(listeners.remove(listener) == null, CudaResult.INVALID_VALUE);
    }

    private boolean isOver() {
        return usedBytes > budgetBytes;
    }

    /// Notifies the listeners on a thread of its own, as the driver does.
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
            // The contract of the driver's callbacks: exceptions are swallowed.
        }
    }
}
