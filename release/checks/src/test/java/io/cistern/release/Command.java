package io.cistern.release;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/// A command, run to its end.
final class Command {
    private static final int MINUTES = 10;

    private Command() {}

    /// Returns what it printed, on either stream.
    ///
    /// @throws AssertionError with what it printed, if it takes over ten minutes or ends with another code than 0
    static String run(Path folder, String... line) throws IOException, InterruptedException {
        Path output = Files.createTempFile("command", ".txt");
        ProcessBuilder builder =
                new ProcessBuilder(line).directory(folder.toFile()).redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        Process process = builder.redirectOutput(output.toFile()).start();
        try {
            boolean ended = process.waitFor(MINUTES, TimeUnit.MINUTES);
            String printed = Files.readString(output);
            if (!ended || process.exitValue() != 0) {
                throw new AssertionError(String.join(" ", line) + (ended ? " failed" : " did not end") + "\n" + printed);
            }
            return printed;
        } finally {
            process.destroyForcibly();
            Files.delete(output);
        }
    }
}
