package io.cistern.reports;

import io.cistern.DeviceMemory;
import io.cistern.jvm.JavaProgram;
import io.cistern.simulated.SimulatedGpu;
import java.io.File;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/// Runs a program of the tests in a JVM of its own, with all that they have on its class path.
public final class OwnJvm {
    private OwnJvm() {}

    /// @param options for the JVM
    /// @return what it printed, by lines
    public static List<String> run(Class<?> program, String... options) throws Exception {
        List<String> all = new ArrayList<>(List.of(options));
        all.addAll(List.of("--class-path", String.join(File.pathSeparator, classPath(program))));
        return new JavaProgram(program.getName(), all).run();
    }

    /// Returns the class path of the tests.
    public static List<String> classPath(Class<?> program) throws URISyntaxException {
        List<String> path = new ArrayList<>();
        for (Class<?> each : List.of(DeviceMemory.class, program, SimulatedGpu.class)) {
            path.add(new File(each.getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .getPath());
        }
        Stream.of("jdk.module.path", "java.class.path")
                .flatMap(key -> Arrays.stream(System.getProperty(key, "").split(File.pathSeparator)))
                .forEach(path::add);
        return path;
    }
}
