package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;

/// The optional ability of a [DeviceAllocator] to give the physical memory of its blocks back to the driver on all
/// devices, while the blocks keep their addresses, and to bring it back under them later. An allocator that
/// [can][#canSleep] implements all methods.
///
/// **What the framework sees to.** Nothing is allocated from the beginning of [#sleep] to the end of the waking,
/// and what was begun before has ended; nobody captures on a device that it has memory of. Frees come at any time:
/// they are book-keeping, and what was freed need not wake.
///
/// **What the allocator sees to.** Work that uses the memory has finished before it goes. Whoever has registered
/// the memory hears that it goes and comes; what has to stay where it is, stays, and is told.
///
/// **Threads.** Sleeping and waking is done by one thread at a time, all else by any.
public interface MemorySleep {
    /// Returns whether this allocator, as it was opened, can sleep.
    default Availability canSleep() {
        return Availability.no("its allocator can't");
    }

    /// Gives all physical memory back that may go; again, what had to stay the last time. With [SleepMode#DROP]
    /// also gives up what is kept since an earlier sleep.
    ///
    /// @param host where kept bytes go
    /// @return what went, and what stays and why
    /// @throws UnsupportedOperationException if it [can't][#canSleep]
    /// @throws io.cistern.cuda.CudaException if the driver refuses. Then everything is awake again, unless
    ///     [#isAsleep] says that this failed too: then nothing is lost, and waking can be tried again
    default TrimResult sleep(SleepMode mode, HostMemory host) {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Returns whether it sleeps: a [#sleep] has been, and no waking since, also if there was nothing to give back.
    default boolean isAsleep() {
        return false;
    }

    /// Brings memory back under all addresses, and what was kept into it.
    ///
    /// @return what is to be decided; the memory must not be used before
    /// @throws UnsupportedOperationException if it [can't][#canSleep]
    /// @throws DeviceOutOfMemoryException if there is not enough memory now; then everything is asleep as before
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then too
    default Waking wake() {
        throw new UnsupportedOperationException("MemorySleep: " + canSleep().reason());
    }

    /// Memory that is back, and could go once more without a loss.
    interface Waking extends AutoCloseable {
        /// Stays awake: what was kept on the host is given up.
        void commit();

        /// Sleeps again, as before, unless it was [decided][#commit] to stay awake. Does not throw.
        @Override
        void close();
    }
}
