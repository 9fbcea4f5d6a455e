package io.cistern.cuda.settings;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/// Thrown when a setting has an illegal value. The message names the value's source, the value, and the legal
/// values.
public final class IllegalSettingException extends IllegalArgumentException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param what a human-readable description of what is wrong
    public IllegalSettingException(Settings.Value set, @Nullable String what) {
        super(line(set.source(), what));
    }

    /// Returns a problem as one line, whatever characters a value has, because problems are listed one per
    /// line.
    ///
    /// @param source the source of a setting
    public static String line(String source, @Nullable String what) {
        return (source + ": " + what).replaceAll("\\R", " ").replaceAll("\\p{Cntrl}", "?");
    }
}
