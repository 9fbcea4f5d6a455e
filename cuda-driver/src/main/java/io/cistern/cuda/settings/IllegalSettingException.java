package io.cistern.cuda.settings;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/// A setting has a value that it can't have. The message names who set it, the value, and what is legal.
public final class IllegalSettingException extends IllegalArgumentException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param what is wrong, for people
    public IllegalSettingException(Settings.Value set, @Nullable String what) {
        super(set.source() + ": " + what);
    }
}
