package io.cistern.cli.common;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A file that an option names for results.
public final class OutputFile {
    private OutputFile() {}

    /// Checks that a file can be made, before work begins whose results would be lost. It writes nothing.
    ///
    /// @param option the option's name, for the message
    /// @param file the file; null if the option is not given
    /// @param inputs the files that the command reads
    /// @throws UsageException if the folder does not exist or may not be written, the file is a folder, or it is
    ///     one of the inputs
    public static void check(String option, @Nullable Path file, List<Path> inputs) {
        if (file == null) {
            return;
        }
        if (inputs.stream().anyMatch(input -> isSame(file, input))) {
            throw unwritable(option, file, "it is an input, and would be overwritten");
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

    /// Checks that the files of two options differ, since one would overwrite the other.
    ///
    /// @param file a file that was [checked][#check]; null if the option is not given
    /// @param otherFile likewise
    /// @throws UsageException if they are one file
    public static void checkApart(String option, @Nullable Path file, String other, @Nullable Path otherFile) {
        if (file != null && otherFile != null && isOrWillBeSame(file, otherFile)) {
            throw new UsageException(option + " and " + other + " name the same file: " + file);
        }
    }

    private static boolean isOrWillBeSame(Path file, Path other) {
        return isSame(file, other)
                || (!Files.exists(file)
                        && file.toAbsolutePath()
                                .normalize()
                                .equals(other.toAbsolutePath().normalize()));
    }

    private static boolean isSame(Path file, Path other) {
        try {
            return Files.isRegularFile(file) && Files.exists(other) && Files.isSameFile(file, other);
        } catch (IOException e) {
            throw new UsageException(file + " and " + other + " can't be compared: " + e.getMessage());
        }
    }

    /// Returns the error for a file that can't be written.
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
