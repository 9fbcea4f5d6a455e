package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Frees something when an allocation through a [TaskArbiter] was refused, before any thread waits or rolls
/// back, and says whether it did. A [SpillStore] is a room maker; for allocations that do not go through an
/// arbiter, it spills in the reclaim step [io.cistern.diagnostics.ReclaimStep#SPILL].
///
/// The arbiter calls it on the allocating thread, possibly on several threads at once, and holds no lock
/// meanwhile. An exception from it goes to the caller of the allocation.
@FunctionalInterface
public interface RoomMaker {
    /// Frees something, if possible.
    ///
    /// @param failure the refusal, with its bytes and device
    /// @return whether anything was freed; if so, the allocation is attempted again
    boolean makeRoom(DeviceOutOfMemoryException failure);
}
