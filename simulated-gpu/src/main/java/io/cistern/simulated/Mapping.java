package io.cistern.simulated;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Physical memory at an address, with the access rights to it. One block may have several mappings (aliases).
final class Mapping {
    private final Kind kind;
    private final long address;
    private final PhysicalBlock block;
    private final long bufferId;
    private final @Nullable Function<MemoryLocation, AccessRights> sharedRights;
    private final Map<MemoryLocation, AccessRights> ownRights = new HashMap<>();
    private final UseMarks uses = new UseMarks();

    /// The call families that make mappings.
    enum Kind {
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
    Mapping(
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

    Kind kind() {
        return kind;
    }

    long address() {
        return address;
    }

    long byteSize() {
        return block.byteSize();
    }

    long end() {
        return address + block.byteSize();
    }

    PhysicalBlock block() {
        return block;
    }

    long bufferId() {
        return bufferId;
    }

    UseMarks uses() {
        return uses;
    }

    AccessRights rights(MemoryLocation accessor) {
        if (sharedRights != null) {
            return sharedRights.apply(accessor);
        }
        return ownRights.getOrDefault(accessor, AccessRights.NONE);
    }

    void setRights(MemoryLocation accessor, AccessRights rights) {
        ownRights.put(accessor, rights);
    }

    boolean allows(int device, boolean write) {
        AccessRights rights = rights(MemoryLocation.device(device));
        return write ? rights == AccessRights.READ_WRITE : rights != AccessRights.NONE;
    }
}
