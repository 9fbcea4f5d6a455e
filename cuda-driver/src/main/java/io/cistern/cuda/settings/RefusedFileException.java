package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.Serial;

/// Thrown for a file or directory that exists but is refused. The message says why, and is meant to follow its
/// path.
public final class RefusedFileException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param why the reason, to follow a path: `is not a regular file`
    public RefusedFileException(String why) {
        super(why);
    }
}
