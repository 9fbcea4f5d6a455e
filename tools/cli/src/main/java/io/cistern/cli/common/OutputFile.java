package io.cistern.cli.common;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// A file that an option names for results.
public final class OutputFile {
    private OutputFile() {}

    /// Checks that a file can be made, before work begins whose results would be lost. It writes nothing.
    ///
    /// @param option the option's name, for the message
    /// @param file the file; null if the option is not given
    /// @throws UsageException if the folder does not exist or may not be written, or the file is a folder
    public static void check(String option, @Nullable Path file) {
        if (file == null) {
            return;
        }
        Path folder = file.toAbsolutePath().getParent();
        if (Files.isDirectory(file)) {
            throw unwritable(option, file, "it is a folder");
        }
        if (folder == null || !Files.isDirectory(folder)) {
            throw unwritable(option, file, "there is no such folder");
        }
        if (!Files.isWritable(Files.exists(file) ? file : folder)) {
            throw unwritable(option, file, "permission denied");
        }
    }

    /// Returns the error for a file that can't be written.
    ///
    /// @param option the option's name
    public static UsageException unwritable(String option, @Nullable Path file, IOException failure) {
        return unwritable(option, file, why(failure));
    }

    private static UsageException unwritable(String option, @Nullable Path file, String why) {
        return new UsageException(option + " " + file + " can't be written: " + why);
    }

    /// Some file system exceptions have only the file's name as a message; their class says what is wrong.
    private static String why(IOException failure) {
        return switch (failure) {
            case NoSuchFileException _ -> "there is no such folder";
            case AccessDeniedException _ -> "permission denied";
            default -> String.valueOf(failure.getMessage());
        };
    }
}
