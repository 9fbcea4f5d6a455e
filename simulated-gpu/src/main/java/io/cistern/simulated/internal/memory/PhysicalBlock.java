package io.cistern.simulated.internal.memory;

import io.cistern.cuda.MemoryLocation;
import org.jspecify.annotations.Nullable;

/// Physical memory. It counts against its device's budget from creation until no handle and no mapping of it is
/// left.
public final class PhysicalBlock {
    private final long byteSize;
    private final MemoryLocation location;
    private final int handleTypes;
    private final Contents contents;
    private final @Nullable MemoryBudget budget;
    private long handle;
    private int references;
    private int mappings;

    /// Takes the memory from the budget, if there is one.
    public PhysicalBlock(
            long byteSize, MemoryLocation location, int handleTypes, Contents contents, @Nullable MemoryBudget budget) {
        this.byteSize = byteSize;
        this.location = location;
        this.handleTypes = handleTypes;
        this.contents = contents;
        this.budget = budget;
        if (budget != null) {
            budget.take(byteSize);
        }
    }

    public static PhysicalBlock onDevice(int device, long byteSize, MemoryBudget budget) {
        return new PhysicalBlock(byteSize, MemoryLocation.device(device), 0, new ByteContents(byteSize), budget);
    }

    /// Creates managed memory, which takes from a device's budget only the pages that reside there.
    public static PhysicalBlock managed(int device, long byteSize, Contents bytes) {
        return new PhysicalBlock(byteSize, MemoryLocation.device(device), 0, new ManagedContents(bytes), null);
    }

    public static PhysicalBlock onHost(MemoryLocation location, long byteSize) {
        return new PhysicalBlock(byteSize, location, 0, new ByteContents(byteSize), null);
    }

    public long byteSize() {
        return byteSize;
    }

    public MemoryLocation location() {
        return location;
    }

    public int handleTypes() {
        return handleTypes;
    }

    public Contents contents() {
        return contents;
    }

    /// Returns the handle that programs hold, or 0.
    public long handle() {
        return handle;
    }

    public void setHandle(long created) {
        handle = created;
    }

    public int references() {
        return references;
    }

    public void retain() {
        references++;
    }

    public void release() {
        references--;
        giveBackIfUnused();
    }

    public void mapped() {
        mappings++;
    }

    public void unmapped() {
        mappings--;
        giveBackIfUnused();
    }

    public boolean unused() {
        return references == 0 && mappings == 0;
    }

    private void giveBackIfUnused() {
        if (unused() && budget != null) {
            budget.give(byteSize);
        }
        if (unused() && contents instanceof ManagedContents managed) {
            managed.end();
        }
    }
}
