package io.cistern;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// What a scope applies to.
///
/// @param device the one device; [#EVERY_DEVICE] for all
/// @param stream the one stream; empty for all
/// @param limit what its blocks are charged to besides; null for nothing
record Reach(int device, OptionalLong stream, @Nullable MemoryLimit limit) {
    static final int EVERY_DEVICE = -1;

    /// Everything, without a limit.
    static final Reach ALL = new Reach(EVERY_DEVICE, OptionalLong.empty(), null);

    Reach onDevice(int one) {
        return new Reach(one, OptionalLong.empty(), limit);
    }

    Reach onStream(int one, long ofIt) {
        return new Reach(one, OptionalLong.of(ofIt), limit);
    }

    Reach within(MemoryLimit bound) {
        return new Reach(device, stream, bound);
    }
}
