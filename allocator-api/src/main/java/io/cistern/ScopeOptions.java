package io.cistern;

import io.cistern.internal.routing.ScopeTarget;

/// Says which devices and streams a scope serves, and which limit its blocks are charged to.
///
/// ```java
/// try (Scope _ = pool.enter(ScopeOptions.all().device(1).limit(request))) { … }
/// pool.run(ScopeOptions.all().stream(0, stream), () -> step());
/// ```
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class ScopeOptions {
    private static final ScopeOptions ALL = new ScopeOptions(ScopeTarget.ALL);

    private final ScopeTarget target;

    private ScopeOptions(ScopeTarget target) {
        this.target = target;
    }

    /// Returns options for all devices and streams, without a limit.
    public static ScopeOptions all() {
        return ALL;
    }

    /// Returns these options for one device, on all its streams.
    ///
    /// @param device the device's ordinal; entering a scope throws [IndexOutOfBoundsException] if there is
    ///     no such device
    /// @throws IndexOutOfBoundsException if it is negative
    public ScopeOptions device(int device) {
        requireOrdinal(device);
        return new ScopeOptions(target.onDevice(device));
    }

    /// Returns these options for one stream of one device.
    ///
    /// @param device the device's ordinal; entering a scope throws [IndexOutOfBoundsException] if there is
    ///     no such device
    /// @param stream a `CUstream`
    /// @throws IndexOutOfBoundsException if the device is negative
    public ScopeOptions stream(int device, long stream) {
        requireOrdinal(device);
        return new ScopeOptions(target.onStream(device, stream));
    }

    private static void requireOrdinal(int device) {
        if (device < 0) {
            throw new IndexOutOfBoundsException("device is negative: " + device);
        }
    }

    /// Returns these options with a limit. Blocks that are allocated in the scope are charged to it and to all limits
    /// above it, until they are freed, in the scope or not. A scope that is opened inside has only its own
    /// limit: make that a [child][MemoryLimit#child] of this one where both shall hold.
    public ScopeOptions limit(MemoryLimit limit) {
        return new ScopeOptions(target.within(limit.handle()));
    }

    /// Returns where the scope applies.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    ScopeTarget target(Allocator allocator) {
        if (target.device() != ScopeTarget.EVERY_DEVICE) {
            allocator.opened().checkedDevice(target.device());
        }
        return target;
    }
}
