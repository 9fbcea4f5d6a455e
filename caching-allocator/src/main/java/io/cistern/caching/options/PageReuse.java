package io.cistern.caching.options;

import java.util.Locale;

/// Whether idle pages of one stream may serve another.
public enum PageReuse {
    /// Not while both streams exist. Pages of a stream that has ended may serve others once its work has
    /// finished, as if the pages had been given back and created again.
    NEVER,
    /// Idle pages may serve another stream once the work on them has finished. If there are only idle pages
    /// with unfinished work, the allocator creates new ones while the reserved bytes are below two bounds:
    /// an eighth more than the peak of live bytes, and a sixteenth of the memory available to this
    /// allocator. At either bound, it does the same as [#WAIT].
    ADAPTIVE,
    /// All idle pages may serve another stream. That stream waits, on the device, for the stream that the
    /// pages come from.
    WAIT;

    /// Returns the constant as a spec has it: in lower case.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
