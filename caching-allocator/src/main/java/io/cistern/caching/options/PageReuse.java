package io.cistern.caching.options;

import java.util.Locale;

/// Whether idle pages of one stream may serve another.
public enum PageReuse {
    /// Never, while both streams exist. Pages of a stream that has ended serve others once its work has
    /// finished, as if they had been given back and created again.
    NEVER,
    /// Pages whose last work has finished. If only pages with running work are idle, new pages are created, as
    /// long as the reserved bytes are less than an eighth above the peak of live bytes, and less than a sixteenth
    /// of the available memory; above that, the same as [#WAIT]. Memory that others use is not available.
    ADAPTIVE,
    /// All idle pages: the stream that takes them waits, on the device, for the stream that they come from.
    WAIT;

    /// Returns the constant as a spec has it: in lower case.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
