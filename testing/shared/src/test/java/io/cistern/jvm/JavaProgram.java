package io.cistern.jvm;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// A Java program in a JVM of its own, of the Java that runs the test, on the driver that the test runs on, without
/// what the environment says of Cistern.
///
/// @param mainClass the name of its main class
/// @param options for the JVM, paths included
/// @param arguments for the program
/// @param variables of the environment that it has besides the test's
public record JavaProgram(
        String mainClass, List<String> options, List<String> arguments, Map<String, String> variables) {
    private static final String ENVIRONMENT = "CISTERN_";
    /// Most programs end before the second compiler pays; options overrule these.
    private static final List<String> SHORT_LIVED = List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");

    private static final String DRIVER = "cistern.driver";

    /// A program without arguments or variables.
    public JavaProgram(String mainClass, List<String> options) {
        this(mainClass, options, List.of(), Map.of());
    }

    /// Runs it to its end.
    ///
    /// @return what it printed, on either stream, by lines
    /// @throws AssertionError with what it printed, if it takes over three minutes or ends with another code than 0
    public List<String> run() throws IOException, InterruptedException {
        return run(0);
    }

    /// Runs it to its end.
    ///
    /// @return what it printed, on either stream, by lines
    /// @throws AssertionError with what it printed, if it takes over three minutes or ends with another code
    public List<String> run(int exitCode) throws IOException, InterruptedException {
        Path output = Files.createTempFile("program", ".txt");
        Process process = builder().redirectOutput(output.toFile()).start();
        try {
            boolean ended = process.waitFor(3, TimeUnit.MINUTES);
            List<String> printed = Files.readAllLines(output);
            if (!ended || process.exitValue() != exitCode) {
                String how = ended ? " ended with " + process.exitValue() : " did not end";
                throw new AssertionError(mainClass + how + "\n" + String.join("\n", printed));
            }
            return printed;
        } finally {
            process.destroyForcibly();
            Files.delete(output);
        }
    }

    /// Starts it, to be talked to.
    public RunningProgram start() throws IOException {
        return new RunningProgram(mainClass, builder().start());
    }

    private ProcessBuilder builder() {
        ProcessBuilder builder = new ProcessBuilder(line()).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith(ENVIRONMENT));
        builder.environment().putAll(variables);
        return builder;
    }

    private List<String> line() {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        line.addAll(SHORT_LIVED);
        if (System.getProperty(DRIVER) != null) {
            line.add("-D" + DRIVER + "=" + System.getProperty(DRIVER)); // before the options, which overrule it
        }
        line.addAll(options);
        line.add(mainClass);
        line.addAll(arguments);
        return line;
    }

    /// Some paths as one.
    public static String joined(List<Path> paths) {
        return String.join(
                File.pathSeparator, paths.stream().map(Path::toString).toList());
    }
}
