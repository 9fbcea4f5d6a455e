package io.cistern.caching.options;

import java.util.Locale;

/// Whether idle pages of one stream may serve another.
public enum PageReuse {
    /// Never, while both streams are there. Those of a stream that has ended do once its work has finished, as if they
    /// had been given back and created again.
    NEVER,
    /// Those whose last work has finished. While that of others is under way, new pages are created as long as less
    /// than a sixteenth of the device is reserved; from there on, as [#WAIT].
    ADAPTIVE,
    /// All: the stream that takes them waits, on the device, for the one they come from.
    WAIT;

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
