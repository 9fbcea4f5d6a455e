package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Answers what the driver knows about an address.
final class Pointer {
    private final Machine machine;
    private final int device;
    private final @Nullable Allocation allocation;
    private final Mapping mapping;

    /// Fails with INVALID_VALUE if the address belongs to no live allocation and no mapping of its own.
    Pointer(Machine machine, int device, long address) {
        this.machine = machine;
        this.device = device;
        allocation = machine.space.allocationAt(address);
        Mapping found = machine.space.mappingAt(address);
        require(found != null && (allocation != null || found.kind() == Mapping.Kind.VIRTUAL));
        mapping = java.util.Objects.requireNonNull(found);
    }

    long attribute(PointerAttribute attribute) {
        return switch (attribute) {
            case CONTEXT -> hasContext() ? SimulatedDevices.contextOf(home()) : 0;
            case MEMORY_TYPE -> mapping.block().location().type() == MemoryLocation.Type.DEVICE ? 2 : 1;
            case BUFFER_ID -> allocation != null ? allocation.bufferId() : mapping.bufferId();
            case IS_MANAGED -> allocation != null && allocation.isManaged() ? 1 : 0;
            case DEVICE_ORDINAL -> home();
            case RANGE_START ->
                allocation != null ? allocation.address() : reservation().getKey();
            case RANGE_SIZE ->
                allocation != null ? allocation.byteSize() : reservation().getValue();
            case MAPPED -> 1;
            case ALLOWED_HANDLE_TYPES -> handleTypes();
            case ACCESS_FLAGS -> accessFlags();
            case MEMPOOL_HANDLE ->
                allocation != null && allocation.pool() != null
                        ? allocation.pool().handle()
                        : 0;
        };
    }

    private boolean hasContext() {
        return switch (mapping.kind()) {
            case LINEAR, HOST, MANAGED -> true;
            default -> false;
        };
    }

    private int home() {
        return allocation != null ? allocation.device() : Machine.homeOf(mapping.block(), device);
    }

    private Map.Entry<Long, Long> reservation() {
        return java.util.Objects.requireNonNull(machine.space.reservationAt(mapping.address()));
    }

    private int handleTypes() {
        if (allocation != null && allocation.pool() != null) {
            return allocation.pool().properties().handleTypes();
        }
        return mapping.block().handleTypes();
    }

    private int accessFlags() {
        AccessRights rights = mapping.rights(MemoryLocation.device(device));
        return rights.code();
    }
}
