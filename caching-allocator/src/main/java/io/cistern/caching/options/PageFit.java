package io.cistern.caching.options;

import java.util.Locale;

/// How closely the pages of large blocks follow what is live. The finer they are, the less is reserved that
/// nobody asked for, and the more calls of the driver it takes until a program comes to rest.
public enum PageFit {
    /// Pages of at most 1/128 of the most that was ever live at once.
    USUAL,
    /// Pages of at most 1/1024 of it.
    TIGHT;

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
