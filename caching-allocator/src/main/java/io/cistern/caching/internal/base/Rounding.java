package io.cistern.caching.internal.base;

import io.cistern.caching.options.PowerTwoDivisions;
import org.jspecify.annotations.Nullable;

/// The size of the block that serves a request: whole units, and on to the next [division][PowerTwoDivisions] where
/// there are any; or the size of its class, so that thread caches can keep it. What that adds is the rounding loss.
public final class Rounding {
    private final long unit;
    private final @Nullable PowerTwoDivisions divisions;
    private final boolean inClasses;

    /// Rounds up to whole units.
    ///
    /// @param unit a power of two, at least a granule
    public Rounding(long unit, @Nullable PowerTwoDivisions divisions) {
        this(unit, divisions != null && divisions.rounds() ? divisions : null, false);
    }

    private Rounding(long unit, @Nullable PowerTwoDivisions divisions, boolean inClasses) {
        this.unit = unit;
        this.divisions = divisions;
        this.inClasses = inClasses;
    }

    /// The same, but small blocks have the sizes of [SizeClasses].
    public Rounding inClasses() {
        return new Rounding(unit, divisions, true);
    }

    /// A request's size, rounded.
    ///
    /// @param byteSize at least 1, at most [Sizes#LARGEST]
    public long rounded(long byteSize) {
        if (inClasses && SizeClasses.has(byteSize)) {
            return SizeClasses.rounded(byteSize);
        }
        return Sizes.rounded(byteSize, divisions == null ? unit : divisions.step(byteSize, unit));
    }

    /// Whether any size is rounded to more than whole units.
    public boolean divides() {
        return divisions != null;
    }

    public long unit() {
        return unit;
    }
}
