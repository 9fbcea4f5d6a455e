package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.Serial;

/// Thrown for a file or directory that exists but is refused. The message gives the reason, worded to follow
/// the path.
public final class RefusedFileException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param why the reason, worded to follow the path: `is not a regular file`
    public RefusedFileException(String why) {
        super(why);
    }
}
