package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Asked for room when an allocation through a [TaskArbiter] was refused, before anybody waits or rolls back:
/// frees something, and says whether it did. A [SpillStore] is one; to allocations that go through no arbiter it
/// is the step [io.cistern.diagnostics.ReclaimStep#SPILL].
///
/// Called on the thread that allocates, which may be any, by several at once; no lock of the arbiter is held.
/// What is thrown goes to the caller.
@FunctionalInterface
public interface RoomMaker {
    /// Makes room.
    ///
    /// @param failure what was refused, with its bytes and device
    /// @return whether anything was freed: then the allocator is asked again
    boolean makeRoom(DeviceOutOfMemoryException failure);
}
