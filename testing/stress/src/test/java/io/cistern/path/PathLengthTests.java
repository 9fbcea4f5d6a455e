package io.cistern.path;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// How many classes and methods of Cistern one call passes through, without those of the driver: what a reader has to
/// follow. Whoever needs more must say why in ARCHITECTURE.md.
class PathLengthTests {
    @TempDir
    private static Path folder;

    private static List<String> printed = List.of();

    @BeforeAll
    static void run() throws Exception {
        JavaProgram program = new JavaProgram(
                PathProgram.class.getName(),
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-javaagent:" + agent(),
                        "--class-path",
                        System.getProperty("java.class.path")));
        printed = program.run();
    }

    /// The agent's classes are on the class path already.
    private static Path agent() throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", PathAgent.class.getName());
        Path jar = folder.resolve("agent.jar");
        try (OutputStream file = Files.newOutputStream(jar)) {
            new JarOutputStream(file, manifest).close();
        }
        return jar;
    }

    private static List<String> methods(String call) {
        return printed.stream()
                .filter(line -> line.startsWith(call + " "))
                .map(line -> line.substring(call.length() + 1))
                .toList();
    }

    private static List<String> classes(String call, String prefix) {
        return methods(call).stream()
                .map(method -> method.split(" ")[0])
                .filter(type -> type.startsWith(prefix))
                .distinct()
                .toList();
    }

    @Test
    void aHitIsShort() {
        assertThat(classes("hit", "io.cistern.")).hasSizeBetween(5, 16);
        assertThat(classes("free", "io.cistern.")).hasSizeBetween(5, 16);
    }

    @Test
    void aMissThatGrowsGoesStraightDown() {
        assertThat(classes("miss", "io.cistern.caching.")).hasSizeBetween(20, 40);
        assertThat(methods("miss")).hasSizeBetween(100, 275);
    }
}
