package io.cistern.caching.options;

import java.util.Locale;

/// How closely the pages of large blocks follow what is live. The finer they are, the less is reserved that
/// nobody asked for, and the more calls of the driver it takes until a program comes to rest.
public enum PageFit {
    /// Pages of 1/64 of the most that was ever live at once, from 8 MiB on, or 4 while that is little; of 1/128
    /// once pages move much, since then what is left over in them is wanted elsewhere.
    USUAL,
    /// Pages of 1/1024 of it, from 2 MiB on, and no slack unless it is given.
    TIGHT;

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
