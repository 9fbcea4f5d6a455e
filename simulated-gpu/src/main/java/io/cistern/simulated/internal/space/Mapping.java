package io.cistern.simulated.internal.space;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Physical memory at an address, with the access rights to it. One block may have several mappings (aliases).
public final class Mapping {
    private final Kind kind;
    private final long address;
    private final PhysicalBlock block;
    private final long bufferId;
    private final @Nullable Function<MemoryLocation, AccessRights> sharedRights;
    private final Map<MemoryLocation, AccessRights> ownRights = new HashMap<>();
    private final UseMarks uses = new UseMarks();

    /// The call families that make mappings.
    public enum Kind {
        LINEAR,
        POOL,
        IMPORTED,
        GRAPH,
        HOST,
        MANAGED,
        VIRTUAL
    }

    /// Makes a mapping. If `sharedRights` is given, its rights are kept elsewhere: with a device's peers, or
    /// with a pool.
    public Mapping(
            Kind kind,
            long address,
            PhysicalBlock block,
            long bufferId,
            @Nullable Function<MemoryLocation, AccessRights> sharedRights) {
        this.kind = kind;
        this.address = address;
        this.block = block;
        this.bufferId = bufferId;
        this.sharedRights = sharedRights;
    }

    public Kind kind() {
        return kind;
    }

    public long address() {
        return address;
    }

    public long byteSize() {
        return block.byteSize();
    }

    public long end() {
        return address + block.byteSize();
    }

    public PhysicalBlock block() {
        return block;
    }

    public long bufferId() {
        return bufferId;
    }

    public UseMarks uses() {
        return uses;
    }

    public AccessRights rights(MemoryLocation accessor) {
        if (sharedRights != null) {
            return sharedRights.apply(accessor);
        }
        return ownRights.getOrDefault(accessor, AccessRights.NONE);
    }

    public void setRights(MemoryLocation accessor, AccessRights rights) {
        ownRights.put(accessor, rights);
    }

    public boolean allows(int device, boolean write) {
        AccessRights rights = rights(MemoryLocation.device(device));
        return write ? rights == AccessRights.READ_WRITE : rights != AccessRights.NONE;
    }
}
