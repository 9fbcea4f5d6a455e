package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Tries to free memory after an allocation through a [TaskArbiter] was refused, before any thread
/// waits or rolls back, and returns whether it freed any. A [SpillStore] is a room maker; for
/// allocations that do not go through an arbiter, it spills in the reclaim step
/// [io.cistern.diagnostics.ReclaimStep#SPILL].
///
/// The arbiter calls the room maker on the allocating thread, possibly on several threads at once,
/// without holding a lock. If the room maker throws, its exception goes to the caller of the
/// allocation.
@FunctionalInterface
public interface RoomMaker {
    /// Frees memory, if possible.
    ///
    /// @param failure the refusal, with its bytes and device
    /// @return whether anything was freed; if so, the allocation is attempted again
    boolean makeRoom(DeviceOutOfMemoryException failure);
}
