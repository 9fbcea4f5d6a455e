package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Frees something when an allocation through a [TaskArbiter] was refused, before any thread waits or rolls
/// back, and says whether it did. A [SpillStore] is a room maker. For allocations outside an arbiter, it is the
/// step [io.cistern.diagnostics.ReclaimStep#SPILL].
///
/// It is called on the allocating thread, possibly on several threads at once; no lock of the arbiter is held. An
/// exception that it throws goes to the caller of the allocation.
@FunctionalInterface
public interface RoomMaker {
    /// Frees something, if possible.
    ///
    /// @param failure the refusal, with its bytes and device
    /// @return whether anything was freed; then the allocator is asked again
    boolean makeRoom(DeviceOutOfMemoryException failure);
}
