package io.cistern;

import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.ScopeStack;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Selects the devices and streams that a scope serves, and the limit that its blocks are charged to.
///
/// ```java
/// try (Scope _ = pool.enter(ScopeOptions.all().device(1).limit(request))) { … }
/// pool.run(ScopeOptions.all().stream(stream), () -> step());
/// ```
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class ScopeOptions {
    private static final ScopeOptions ALL = new ScopeOptions(OptionalInt.empty(), OptionalLong.empty(), null);

    private final OptionalInt device;
    private final OptionalLong stream;
    private final @Nullable LimitHandle limit;

    private ScopeOptions(OptionalInt device, OptionalLong stream, @Nullable LimitHandle limit) {
        this.device = device;
        this.stream = stream;
        this.limit = limit;
    }

    /// Returns options for all devices and streams, without a limit.
    public static ScopeOptions all() {
        return ALL;
    }

    /// Returns these options for a scope that serves one device, on all its streams.
    ///
    /// @param device the device's ordinal; entering a scope throws [IndexOutOfBoundsException] if there is
    ///     no such device
    /// @throws IndexOutOfBoundsException if `device` is negative
    public ScopeOptions device(int device) {
        return new ScopeOptions(ordinal(device), OptionalLong.empty(), limit);
    }

    /// Returns these options for a scope that serves one stream of one device.
    ///
    /// @param device the device's ordinal; entering a scope throws [IndexOutOfBoundsException] if there is
    ///     no such device
    /// @param stream a `CUstream`
    /// @throws IndexOutOfBoundsException if `device` is negative
    public ScopeOptions stream(int device, long stream) {
        return new ScopeOptions(ordinal(device), OptionalLong.of(stream), limit);
    }

    /// Returns these options for a scope that serves one stream.
    ///
    /// @throws IllegalStateException if the stream is closed
    public ScopeOptions stream(CudaStream stream) {
        return stream(stream.device(), stream.handle());
    }

    private static OptionalInt ordinal(int device) {
        if (device < 0) {
            throw new IndexOutOfBoundsException("device is negative: " + device);
        }
        return OptionalInt.of(device);
    }

    /// Returns these options with a limit. Blocks that the scope serves are charged to this limit, and to
    /// all limits above it, until they are freed, in the scope or elsewhere. Blocks that a scope inside
    /// this scope serves are not charged to this limit. To enforce the limit for them, too, give the inner
    /// scope a [child][MemoryLimit#child] of it.
    public ScopeOptions limit(MemoryLimit limit) {
        return new ScopeOptions(device, stream, limit.handle());
    }

    /// Returns a scope stack with an allocator on top, as these options say.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the allocator is closed
    ScopeStack over(@Nullable ScopeStack outer, OpenAllocator allocator) {
        return allocator.scopes(outer, device, stream, limit);
    }
}
