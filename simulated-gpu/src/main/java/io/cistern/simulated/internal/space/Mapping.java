package io.cistern.simulated.internal.space;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Physical memory at an address, with the access rights to it. One block may have several mappings (aliases).
///
/// @param kind the call family that made it
/// @param bufferId a unique number if a program made the mapping itself, else 0
/// @param sharedRights the rights, if they are kept elsewhere: with a device's peers, or with a pool
/// @param uses its last use by each stream
public record Mapping(
        Kind kind,
        long address,
        PhysicalBlock block,
        long bufferId,
        @Nullable Function<MemoryLocation, AccessRights> sharedRights,
        Map<MemoryLocation, AccessRights> ownRights,
        UseMarks uses) {
    public enum Kind {
        LINEAR,
        POOL,
        IMPORTED,
        GRAPH,
        HOST,
        MANAGED,
        VIRTUAL
    }

    public Mapping(
            Kind kind,
            long address,
            PhysicalBlock block,
            long bufferId,
            @Nullable Function<MemoryLocation, AccessRights> sharedRights) {
        this(kind, address, block, bufferId, sharedRights, new HashMap<>(), new UseMarks());
    }

    public long byteSize() {
        return block.byteSize();
    }

    public long end() {
        return address + block.byteSize();
    }

    public AccessRights rights(MemoryLocation accessor) {
        return sharedRights != null
                ? sharedRights.apply(accessor)
                : ownRights.getOrDefault(accessor, AccessRights.NONE);
    }

    public boolean allows(int device, boolean write) {
        AccessRights rights = rights(MemoryLocation.device(device));
        return write ? rights == AccessRights.READ_WRITE : rights != AccessRights.NONE;
    }
}
