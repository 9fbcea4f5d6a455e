package io.cistern.caching.internal.base;

import io.cistern.caching.options.PowerTwoDivisions;
import org.jspecify.annotations.Nullable;

/// Computes the size of the block that serves a request. Sizes that thread caches keep are rounded to their
/// size class; others to whole units, or to the next [division][PowerTwoDivisions] if divisions are set. The
/// bytes added are the rounding loss.
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

    /// Returns the same rounding, except that small blocks have the sizes of [SizeClasses].
    public Rounding inClasses() {
        return new Rounding(unit, divisions, true);
    }

    /// Returns the size of the block for a request.
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
