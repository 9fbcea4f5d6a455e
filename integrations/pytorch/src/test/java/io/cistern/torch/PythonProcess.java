package io.cistern.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// Runs `scenarios.py` in a Python process, with the library that Maven has made.
final class PythonProcess {
    static final Path HOME = Path.of("target/home").toAbsolutePath();
    static final Path LIBRARY = HOME.resolve("lib/native/libcistern_torch.so");

    private PythonProcess() {}

    static void require() {
        assumeTrue(Files.exists(LIBRARY), "no C++ compiler, or no header of JNI, on this machine");
        assumeTrue(hasPython(), "no python3 on the path");
    }

    private static boolean hasPython() {
        try {
            return new ProcessBuilder("python3", "--version").start().waitFor() == 0;
        } catch (IOException | InterruptedException absent) {
            return false;
        }
    }

    /// What a process of C or Python needs to start Cistern on the simulated GPU.
    static Map<String, String> environment() {
        return Map.of(
                "CISTERN_HOME",
                HOME.toString(),
                "CISTERN_JAVA_HOME",
                System.getProperty("java.home"),
                "CISTERN_CLASSPATH",
                classPath(),
                "CISTERN_JAVA_OPTS",
                "-Xmx256m -XX:TieredStopAtLevel=1",
                "CISTERN_DRIVER",
                "simulated");
    }

    private static String classPath() {
        String modules = System.getProperty("jdk.module.path", "");
        return System.getProperty("java.class.path") + (modules.isEmpty() ? "" : ":" + modules);
    }

    /// @return what it prints, by lines
    static List<String> run(Map<String, String> changes, String... arguments) throws Exception {
        List<String> line = new ArrayList<>(List.of("python3", "-B", "src/test/python/scenarios.py"));
        line.addAll(List.of(arguments));
        return output(line, changes);
    }

    static List<String> output(List<String> line, Map<String, String> changes) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(line).redirectErrorStream(true);
        builder.environment().putAll(environment());
        builder.environment().put("PYTHONPATH", "src/main/python:src/test/python");
        builder.environment().putAll(changes);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(1, TimeUnit.MINUTES)).as(output).isTrue();
        assertThat(process.exitValue()).as(output).isZero();
        return output.lines().toList();
    }
}
