package io.cistern.simulated;

import io.cistern.cuda.MemoryLocation;
import org.jspecify.annotations.Nullable;

/// Physical memory. It counts against its device's budget from creation until no handle and no mapping of it is
/// left.
final class PhysicalBlock {
    private final long byteSize;
    private final MemoryLocation location;
    private final int handleTypes;
    private final Contents contents;
    private final @Nullable MemoryBudget budget;
    private int references;
    private int mappings;

    /// Takes the memory from the budget, if there is one.
    PhysicalBlock(
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

    static PhysicalBlock onDevice(int device, long byteSize, MemoryBudget budget) {
        return new PhysicalBlock(byteSize, MemoryLocation.device(device), 0, new ByteContents(byteSize), budget);
    }

    /// Makes managed memory, which takes from a device's budget only the pages that are there.
    static PhysicalBlock managed(int device, long byteSize, Contents bytes) {
        return new PhysicalBlock(byteSize, MemoryLocation.device(device), 0, new ManagedContents(bytes), null);
    }

    /// Makes host memory, which has no budget.
    static PhysicalBlock onHost(MemoryLocation location, long byteSize) {
        return new PhysicalBlock(byteSize, location, 0, new ByteContents(byteSize), null);
    }

    long byteSize() {
        return byteSize;
    }

    MemoryLocation location() {
        return location;
    }

    int handleTypes() {
        return handleTypes;
    }

    Contents contents() {
        return contents;
    }

    int references() {
        return references;
    }

    void retain() {
        references++;
    }

    void release() {
        references--;
        giveBackIfUnused();
    }

    void mapped() {
        mappings++;
    }

    void unmapped() {
        mappings--;
        giveBackIfUnused();
    }

    boolean unused() {
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
