package io.cistern.locks;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Graphs, captures, ordinary traffic, trims and reports on threads beside each other: nothing hangs, fails, is misused
/// or stays; and no two locks are ever taken in two orders.
class LockOrderTests {
    private static final List<String> ARGUMENTS = List.of(
            "1",
            "direct",
            "caching",
            "async",
            "vmm",
            "nccl",
            "symmetric",
            "caching:check=paranoid",
            "caching:source=driver_pool",
            "async:release_threshold=adaptive",
            "async:small_pool=1MiB");

    @TempDir
    private Path folder;

    @Test
    void graphsBesideEverythingElse() throws Exception {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-javaagent:" + agent(),
                "--class-path",
                System.getProperty("java.class.path"));
        List<String> lines = new JavaProgram(GraphTraffic.class.getName(), options, ARGUMENTS, Map.of()).run();
        assertThat(lines).noneMatch(line -> line.startsWith("WRONG"));
        assertThat(lines.getLast()).matches("ENDED [1-9]\\d+");
    }

    /// The agent's classes are on the class path already.
    private Path agent() throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", LockAgent.class.getName());
        Path jar = folder.resolve("agent.jar");
        try (OutputStream file = Files.newOutputStream(jar)) {
            new JarOutputStream(file, manifest).close();
        }
        return jar;
    }
}
