package io.cistern.release;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A project outside, with the one dependency `io.cistern:cistern` taken from a staged release, runs on the class path,
/// on the module path, as a runtime image, as an application with a launcher and as one JAR.
class OutsideProjectTests {
    private static final String MAIN = "com.example.outside/com.example.outside.Main";
    private static final String OF_CLASS_PATH = "--enable-native-access=ALL-UNNAMED";
    private static final String OF_MODULES = "--enable-native-access=io.cistern.cuda,io.cistern.loader,io.cistern.nccl";

    /// What the program prints, whichever way it is started.
    private static final String PRINTED =
            """
            current allocator: caching
            sum of the buffer: 6.0
            pool: caching:source=vmm
            opened: async
            opened: direct
            opened: symmetric
            opened: limit
            """;

    @TempDir
    private static Path project;

    /// The project is built as its users build it. Maven keeps what it took from the release among its own: it is
    /// removed again.
    @BeforeAll
    static void build() throws Exception {
        Path sources = Path.of("src/test/projects/outside");
        try (Stream<Path> files = Files.walk(sources)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Path copy = project.resolve(sources.relativize(file));
                Files.createDirectories(copy.getParent());
                Files.copy(file, copy);
            }
        }
        Command.run(
                project,
                "mvn",
                "-B",
                "-ntp",
                "package",
                "-Dcistern.version=" + StagedArtifact.VERSION,
                "-Dcistern.staged=" + StagedArtifact.STAGED.toUri());
    }

    @AfterAll
    static void forget() throws Exception {
        for (StagedArtifact artifact : StagedArtifact.all()) {
            Path kept = Path.of(System.getProperty("user.home"), ".m2/repository/io/cistern")
                    .resolve(artifact.name())
                    .resolve(StagedArtifact.VERSION);
            if (Files.isDirectory(kept)) {
                try (Stream<Path> files = Files.list(kept)) {
                    for (Path file : files.toList()) {
                        Files.delete(file);
                    }
                }
                Files.delete(kept);
            }
        }
    }

    @Test
    void onTheClassPath() throws Exception {
        assertThat(java(OF_CLASS_PATH, "--class-path", "target/outside-1.0.jar:target/lib/*", MAIN.substring(MAIN.indexOf('/') + 1)))
                .endsWith(PRINTED);
    }

    @Test
    void onTheModulePath() throws Exception {
        assertThat(java(OF_MODULES, "--module-path", "target/outside-1.0.jar:target/lib", "--module", MAIN))
                .endsWith(PRINTED);
    }

    @Test
    void asARuntimeImage() throws Exception {
        tool(
                "jlink",
                "--module-path",
                "target/outside-1.0.jar:target/lib",
                "--add-modules",
                "com.example.outside",
                "--launcher",
                "outside=" + MAIN,
                "--add-options=" + OF_MODULES,
                "--output",
                "target/image");
        assertThat(run("target/image/bin/outside")).endsWith(PRINTED);
    }

    @Test
    void asAnApplicationWithALauncher() throws Exception {
        tool(
                "jpackage",
                "--type",
                "app-image",
                "--name",
                "outside",
                "--module-path",
                "target/outside-1.0.jar:target/lib",
                "--module",
                MAIN,
                "--java-options",
                OF_MODULES,
                "--java-options",
                "-Dcistern.driver=simulated",
                "--dest",
                "target/application");
        assertThat(Command.run(project, "target/application/outside/bin/outside")).endsWith(PRINTED);
    }

    @Test
    void asOneJar() throws Exception {
        assertThat(java("-jar", "target/outside-1.0-all.jar")).endsWith(PRINTED);
    }

    private static String java(String... arguments) throws IOException, InterruptedException {
        return run(Stream.concat(Stream.of(jdk("java")), Stream.of(arguments))
                .toArray(String[]::new));
    }

    private static String run(String... line) throws IOException, InterruptedException {
        return Command.run(
                project,
                Stream.concat(Stream.of("env", "CISTERN_DRIVER=simulated"), Stream.of(line))
                        .toArray(String[]::new));
    }

    private static void tool(String name, String... arguments) throws IOException, InterruptedException {
        Command.run(
                project,
                Stream.concat(Stream.of(jdk(name)), Stream.of(arguments)).toArray(String[]::new));
    }

    private static String jdk(String tool) {
        return Path.of(System.getProperty("java.home"), "bin", tool).toString();
    }
}
