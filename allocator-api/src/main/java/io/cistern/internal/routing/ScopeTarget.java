package io.cistern.internal.routing;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// What a scope applies to.
///
/// @param device the one device; [#EVERY_DEVICE] for all
/// @param stream the one stream; empty for all
/// @param limit what its blocks are charged to besides; null for nothing
public record ScopeTarget(
        int device, OptionalLong stream, @Nullable LimitHandle limit) {
    /// In place of a device.
    public static final int EVERY_DEVICE = -1;

    /// Everything, without a limit.
    public static final ScopeTarget ALL = new ScopeTarget(EVERY_DEVICE, OptionalLong.empty(), null);

    /// The same for one device, on all its streams.
    public ScopeTarget onDevice(int one) {
        return new ScopeTarget(one, OptionalLong.empty(), limit);
    }

    /// The same for one stream of one device.
    public ScopeTarget onStream(int one, long ofIt) {
        return new ScopeTarget(one, OptionalLong.of(ofIt), limit);
    }

    /// The same, charged to a limit.
    public ScopeTarget within(LimitHandle bound) {
        return new ScopeTarget(device, stream, bound);
    }
}
