package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.Serial;

/// A file or directory that is there and is not used. The message says why, and is made to follow its path.
public final class RefusedFileException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param why what is said of it: `is no regular file`
    public RefusedFileException(String why) {
        super(why);
    }
}
