package io.cistern.cuda.settings;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Optional;

/// Whether everybody on the machine could change what a program is about to trust.
public final class WritableByOthers {
    private WritableByOthers() {}

    /// What is wrong with a file or folder that everybody may write to.
    ///
    /// @return how to say it after its path, or nothing if it is all right, or the file system knows no such
    ///     rights
    /// @throws IOException if it is not there
    public static Optional<String> check(Path path) throws IOException {
        try {
            return Files.getPosixFilePermissions(path).contains(PosixFilePermission.OTHERS_WRITE)
                    ? Optional.of("can be written by everybody; chmod o-w it")
                    : Optional.empty();
        } catch (UnsupportedOperationException noPosix) {
            return Optional.empty();
        }
    }
}
