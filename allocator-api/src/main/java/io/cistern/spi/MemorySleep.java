package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// The optional ability of a [DeviceAllocator] to give the physical memory of its blocks back to the driver
/// on all devices, while the blocks keep their addresses, and to bring memory back at these addresses
/// later. An allocator whose [#canSleep] returns yes must override all methods.
///
/// **The framework ensures** that nothing is allocated from the beginning of [#sleep] to the end of the
/// waking, that earlier allocations have ended, and that no stream of a device on which the allocator has
/// memory is captured. Blocks may be freed at any time. While the memory sleeps, a free only updates
/// records, and freed memory need not be brought back.
///
/// **The allocator ensures** that work on the memory has finished before the memory goes back to the
/// driver. It also notifies code that registered the memory, before the memory goes back and after it has
/// returned. It reports memory that must stay.
///
/// **Threads.** Only one thread at a time puts the memory to sleep or wakes it. Any thread may call all
/// other methods.
public interface MemorySleep {
    /// Returns whether this allocator can sleep with the options that it was opened with.
    default Availability canSleep() {
        return Availability.no("its allocator doesn't support it");
    }

    /// Gives back all physical memory except that which must stay. If the memory is already asleep, another
    /// call tries again to give back the memory that had to stay and, with [SleepMode#DROP], discards the
    /// contents that an earlier sleep kept.
    ///
    /// @param host takes the contents that are kept
    /// @return the bytes given back, and the memory that stays, with reasons
    /// @throws UnsupportedOperationException if this allocator [can't sleep][#canSleep]
    /// @throws io.cistern.cuda.CudaException if the driver refuses. The memory is then awake again, unless
    ///     waking it failed, too: then [#isAsleep] is true, nothing is lost, and waking can be tried again
    default TrimResult sleep(SleepMode mode, HostMemory host) {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Returns whether the memory is asleep: from [#sleep], even if no memory went back, until a waking is
    /// committed.
    default boolean isAsleep() {
        return false;
    }

    /// Brings memory back at all addresses, with the contents that were kept.
    ///
    /// @return a waking that the caller commits or closes; the memory must not be used before the commit
    /// @throws UnsupportedOperationException if this allocator [can't sleep][#canSleep]
    /// @throws DeviceOutOfMemoryException if there is not enough memory now; then everything is asleep as
    ///     before
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then everything is asleep as before
    default Waking wake() {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Memory that is back at its addresses, while the host still keeps the contents.
    interface Waking extends AutoCloseable {
        /// Keeps the memory awake, and discards the contents on the host.
        void commit();

        /// Puts the memory back to sleep as before, unless the waking was [committed][#commit]. Does not
        /// throw.
        @Override
        void close();
    }
}
