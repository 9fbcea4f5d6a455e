package io.cistern.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Whether anybody watches. Java's own console answers for input and output together; the kernel knows each.
enum Terminal {
    /// Standard output.
    OUT(1),
    /// Standard error.
    ERR(2);

    private final boolean watched;

    Terminal(int fileDescriptor) {
        watched = isTerminal(Path.of("/proc/self/fd/" + fileDescriptor));
    }

    /// Whether it is a terminal.
    boolean watched() {
        return watched;
    }

    /// The text in bold if this is a terminal whose user has not asked for plain text (`NO_COLOR`).
    String bold(String text) {
        return watched && System.getenv("NO_COLOR") == null ? "\u001b[1m" + text + "\u001b[0m" : text;
    }

    private static boolean isTerminal(Path link) {
        try {
            String target = Files.readSymbolicLink(link).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty") || target.equals("/dev/console");
        } catch (IOException | UnsupportedOperationException e) {
            return false;
        }
    }
}
