package io.cistern.jcuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;

/// The command of the documentation that changes a JCuda program's imports.
final class ImportCommand {
    private static final Path PAGE = Path.of("../../docs/jcuda.md");

    private ImportCommand() {}

    /// Runs it on a copy.
    ///
    /// @return the program's lines afterwards
    static List<String> changed(List<String> program) throws IOException, InterruptedException {
        String command = Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith("sed "))
                .findFirst()
                .orElseThrow();
        Path folder = Files.createTempDirectory("imports");
        Path copy = Files.write(folder.resolve("Program.java"), program);
        try {
            Process shell = new ProcessBuilder("sh", "-c", command)
                    .directory(folder.toFile())
                    .inheritIO()
                    .start();
            if (shell.waitFor() != 0) {
                throw new AssertionError("failed: " + command);
            }
            return Files.readAllLines(copy);
        } finally {
            Files.delete(copy);
            Files.delete(folder);
        }
    }

    /// The lines that differ.
    static List<String> differences(List<String> before, List<String> after) {
        if (before.size() != after.size()) {
            throw new AssertionError(before.size() + " lines became " + after.size());
        }
        return IntStream.range(0, before.size())
                .filter(line -> !before.get(line).equals(after.get(line)))
                .mapToObj(after::get)
                .toList();
    }
}
