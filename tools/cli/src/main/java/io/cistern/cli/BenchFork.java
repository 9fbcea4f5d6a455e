package io.cistern.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// A JVM of its own for a measurement, like this one: the same Java, modules, class path and options. So no allocator
/// meets code that was compiled for another one.
final class BenchFork {
    /// Options that are this JVM's alone: a debugger's port, what it recorded of an earlier run, what the path
    /// options say again.
    private static final List<String> OWN_OPTIONS = List.of(
            "-agentlib:",
            "-javaagent:",
            "-XX:AOT",
            "-Xlog:aot",
            "-Xlog:cds",
            "--module-path",
            "-Djdk.module.",
            "-Dsurefire");

    private static final Class<?> PROGRAM = CisternCommand.class;

    private BenchFork() {}

    /// Runs the program in another JVM and hands over the rows that it prints; all else that it prints goes on to
    /// standard error.
    ///
    /// @return its exit code
    static int run(List<String> arguments, Consumer<BenchRow> onRow, PrintWriter err) {
        List<String> line = new ArrayList<>(command());
        line.addAll(arguments);
        try {
            Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
            try (BufferedReader out = process.inputReader(StandardCharsets.UTF_8)) {
                for (String text = out.readLine(); text != null; text = out.readLine()) {
                    if (BenchRow.isRow(text)) {
                        onRow.accept(BenchRow.parse(text));
                    } else if (!text.isEmpty()) {
                        err.println(text);
                    }
                }
            } finally {
                process.destroy(); // Only if reading failed is it still there.
            }
            return process.waitFor();
        } catch (IOException e) {
            throw new UncheckedIOException("can't run " + line.getFirst(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while another JVM measured", e);
        }
    }

    private static List<String> command() {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(option -> OWN_OPTIONS.stream().noneMatch(option::startsWith))
                .forEach(line::add);
        String classPath = System.getProperty("java.class.path", "");
        if (!classPath.isEmpty()) {
            line.addAll(List.of("-cp", classPath));
        }
        line.addAll(program());
        return line;
    }

    /// How this JVM was told what to run: a module, or a class among the JARs of tests.
    private static List<String> program() {
        String modulePath = System.getProperty("jdk.module.path");
        Module module = PROGRAM.getModule();
        if (modulePath == null || !module.isNamed()) {
            return List.of(PROGRAM.getName());
        }
        return List.of("-p", modulePath, "-m", module.getName() + "/" + PROGRAM.getName());
    }
}
