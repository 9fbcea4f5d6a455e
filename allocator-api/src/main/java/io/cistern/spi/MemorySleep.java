package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// The optional ability of a [DeviceAllocator] to give the physical memory of its blocks back to the driver on all
/// devices, while the blocks keep their addresses, and to bring it back under them later. An allocator that
/// [can][#canSleep] implements all methods.
///
/// **The framework ensures** that nothing is allocated from the beginning of [#sleep] to the end of the waking, that
/// allocations which began before have ended, and that no stream of a device on which the allocator has memory is
/// captured. Frees come at any time. They are book-keeping, and freed memory need not wake.
///
/// **The allocator ensures** that work which uses the memory has finished before it goes, and that users who
/// registered the memory hear when it goes and comes. Memory that must stay where it is stays, and is reported.
///
/// **Threads.** Sleeping and waking is done by one thread at a time, all else by any.
public interface MemorySleep {
    /// Returns whether this allocator, as it was opened, can sleep.
    default Availability canSleep() {
        return Availability.no("its allocator can't");
    }

    /// Gives back all physical memory that may go. While asleep, tries again what had to stay the last time, and with
    /// [SleepMode#DROP] gives up contents that an earlier sleep kept.
    ///
    /// @param host takes the contents that are kept
    /// @return the bytes given back, and what stays and why
    /// @throws UnsupportedOperationException if it [can't][#canSleep]
    /// @throws io.cistern.cuda.CudaException if the driver refuses. Then everything is awake again. If waking
    ///     failed too, [#isAsleep] is true, nothing is lost, and waking can be tried again
    default TrimResult sleep(SleepMode mode, HostMemory host) {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Returns whether it sleeps: whether [#sleep] was called and no waking was committed since, also if there was
    /// nothing to give back.
    default boolean isAsleep() {
        return false;
    }

    /// Brings memory back under all addresses, with the contents that were kept.
    ///
    /// @return a waking to be committed or closed; the memory must not be used before it is committed
    /// @throws UnsupportedOperationException if it [can't][#canSleep]
    /// @throws DeviceOutOfMemoryException if there is not enough memory now; then everything is asleep as before
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then everything is asleep as before
    default Waking wake() {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Memory that is back, while the contents on the host are still kept.
    interface Waking extends AutoCloseable {
        /// Stays awake, and gives up the contents on the host.
        void commit();

        /// Sleeps again as before, unless the waking was [committed][#commit]. Does not throw.
        @Override
        void close();
    }
}
