package io.cistern.cli;

import static java.nio.file.StandardCopyOption.COPY_ATTRIBUTES;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The program as people start it: through the script, in JVMs of their own, with a third party's JAR.
final class ScriptTests {
    @TempDir
    private static Path folder;

    private static Path script;
    private static Path jar;
    private static Path trace;

    @BeforeAll
    static void layOut() throws IOException {
        script = ProgramRun.layOut(Files.createDirectories(folder.resolve("home")));
        jar = AcmePlugin.build(Files.createDirectories(folder.resolve("acme")));
        trace = ProgramRun.trace(folder, "tiny.csv", "a,0,1000,0", "a,1,3000000,1", "f,0,0,0", "a,2,500,0");
    }

    /// What the links lead to stays; JUnit would warn of each.
    @AfterAll
    static void removeLinks() throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path link : files.filter(Files::isSymbolicLink).toList()) {
                Files.delete(link);
            }
        }
    }

    @Test
    void aThirdPartysJarIsListedByDoctor() throws Exception {
        ProgramRun run = run(script, "doctor", "--format", "json", "--class-path", jar.toString());

        assertThat(run.err()).isEmpty();
        assertThat(run.exitCode()).isZero();
        assertThat(run.out()).contains("\"kind\":\"allocator\",\"name\":\"acme\",\"origin\":\"");
        assertThat(run.out()).containsPattern("\"name\":\"acme\",\"origin\":\"[^\"]*acme\\.jar\"");
        assertThat(run.out()).contains("\"current\":{\"allocator\":\"caching\"");
    }

    @Test
    void doctorSaysWhereAPluginComesFromInItsShortAnswer() throws Exception {
        Path plugins = Files.createDirectory(
                folder.resolve("plugins"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        Path copy = Files.copy(jar, plugins.resolve("acme.jar"));
        Files.setPosixFilePermissions(copy, PosixFilePermissions.fromString("rw-r--r--"));

        assertThat(run(script, "doctor", "--class-path", jar.toString()).wholeLines())
                .contains("Plug-ins\n  acme: loaded from " + jar + "\n");
        assertThat(run(script, "doctor", "-Dcistern.plugins=" + plugins).wholeLines())
                .contains("Plug-ins\n  acme: loaded from " + copy + ", sha256 ");
        assertThat(run(script, "doctor").out()).doesNotContain("Plug-ins");
    }

    @Test
    void aThirdPartysJarIsReplayedMeteredAndGetsItsMemoryBack() throws Exception {
        ProgramRun run = run(
                script,
                "replay",
                "--class-path=" + jar,
                trace.toString(),
                "--device=simulated",
                "--allocator=acme",
                "--work=check",
                "--format=jsonl");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out())
                .contains("\"allocator\":\"acme\"", "\"failures\":0", "\"mismatches\":0", "\"unreturnedBytes\":0")
                .contains("\"metered\":{\"allocations\":9,\"frees\":9,\"requestedTotalBytes\":9004500,")
                .contains("\"requestedPeakBytes\":3001000");
        assertThat(run.out().lines()).as("what a plug-in prints is no result").hasSize(1);
        assertThat(run.err()).contains("acme opens", "acme closed: 9 segments acquired, 9 released");
    }

    @Test
    void whatCannotBeUsedIsNotMissedInSilence() throws Exception {
        Path again = Files.copy(jar, folder.resolve("acme-again.jar"));
        ProgramRun run =
                run(script, "replay", trace.toString(), "--device=simulated", "--class-path=" + jar + ":" + again);

        assertThat(run.exitCode()).isZero();
        assertThat(run.out()).contains("caching").doesNotContain("acme");
        assertThat(run.err())
                .contains("WARNING: acme.AcmeProvider of " + jar, "acme-again.jar", "remove all but one")
                .contains("cistern: left out, since they can't be used: acme; `cistern doctor` says why")
                .contains(ProgramRun.SIMULATED_NOTICE);
    }

    @Test
    void aLinkInAnotherFolderDoesTheSame() throws Exception {
        Path elsewhere = Files.createDirectories(folder.resolve("else where"));
        Path link = Files.createSymbolicLink(elsewhere.resolve("c"), script);
        ProgramRun run = ProgramRun.of(link, elsewhere, Map.of(), "--version");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).startsWith("cistern ");
    }

    @Test
    void filesOfAnyNameAreReadInAnyLocale() throws Exception {
        Path file = Files.copy(trace, folder.resolve("\u00e9.csv"));
        for (String locale : List.of("", "C", "C.UTF-8", "de_DE@euro")) {
            ProgramRun run = ProgramRun.of(
                    script,
                    folder,
                    Map.of("LC_ALL", locale, "LC_CTYPE", "", "LANG", ""),
                    "fit",
                    file.toString(),
                    "--allocator=direct");

            assertThat(run.exitCode()).as(locale + ": " + run.err()).isZero();
            assertThat(run.out()).startsWith(file + ": ");
        }
    }

    /// As in a clone without Maven.
    @Test
    void aBuildThatFailsIsOneLine() throws Exception {
        Path clone = Files.createDirectories(folder.resolve("clone/bin"));
        Path build = Files.writeString(clone.resolve("build-program"), "#!/bin/bash\necho no Maven >&2; exit 1\n");
        build.toFile().setExecutable(true);
        Path copy = Files.copy(script, clone.resolveSibling("cistern"), COPY_ATTRIBUTES);

        ProgramRun run = ProgramRun.of(copy, folder, Map.of(), "doctor");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().lines()).containsExactly("no Maven");
    }

    @Test
    void propertiesAnywhereOnTheLineReachTheProgram() throws Exception {
        ProgramRun run = run(script, "doctor", "-Dcistern.allocator=direct", "--format=json");

        assertThat(run.out()).contains("\"current\":{\"allocator\":\"direct\",\"reason\":\"property cistern.allocator");
    }

    @Test
    void aSettingThatCannotBeFollowedIsOneLine() throws Exception {
        for (String setting : List.of("cistern.limit", "cistern.simulated.capacity")) {
            ProgramRun run = run(script, "doctor", "-D" + setting + "=much");

            assertThat(run.exitCode()).isEqualTo(2);
            assertThat(run.err().lines())
                    .singleElement()
                    .asString()
                    .startsWith("cistern: property " + setting + ": 'much' is not a number of bytes; write it like");
        }
    }

    /// A reader of one line would leave before the end or after it: the output fits into the pipe.
    @Test
    void whoReadsNothingHearsNoComplaint() throws Exception {
        ProgramRun run = run(
                Path.of("/bin/bash"),
                "-c",
                "'" + script + "' generate-completion | head -c 0; echo code ${PIPESTATUS[0]}");

        assertThat(run.err()).isEmpty();
        assertThat(run.out().lines()).containsExactly("code 141");
    }

    /// Once plug-ins may bring native code, results go another way.
    @Test
    void whoReadsNothingOfResultsBesidePlugInsHearsNoComplaint() throws Exception {
        ProgramRun run = run(
                Path.of("/bin/bash"),
                "-c",
                "'" + script + "' replay --class-path '" + jar + "' '" + trace + "' --device simulated"
                        + " --allocator direct --format jsonl | true; echo code ${PIPESTATUS[0]}");

        assertThat(run.err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(run.out().lines()).containsExactly("code 141");
    }

    /// It is there for the user's own program.
    @Test
    void aLimitThatIsSetIsToldWhereItDecides() throws Exception {
        ProgramRun run = run(script, "fit", trace.toString(), "--allocator=direct", "-Dcistern.limit=1MiB");

        assertThat(run.err().strip()).isEqualTo("cistern: property cistern.limit limits the replays, too: 1MiB");
        assertThat(run.out()).contains("direct refuses it even on 8.00 TiB");
    }

    @Test
    void aFullDiskIsComplainedOf() throws Exception {
        ProgramRun run = run(Path.of("/bin/bash"), "-c", "'" + script + "' doctor > /dev/full");

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err().strip()).isEqualTo("cistern: standard output can't be written");
    }

    /// Java has opened a file of its own under that number, and does not survive that plug-ins may write there.
    @Test
    void aClosedOutputIsComplainedOf() throws Exception {
        ProgramRun run = run(Path.of("/bin/bash"), "-c", "'" + script + "' doctor --class-path '" + jar + "' >&-");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().strip())
                .isEqualTo("cistern: standard output can't be written: it is closed, or open only for reading");
    }

    @Test
    void aBadTraceEndsWithTwoAndOneLine() throws Exception {
        Path bad = ProgramRun.trace(folder, "bad.csv", "f,1,0,0");
        ProgramRun run = run(script, "replay", bad.toString());

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().strip()).isEqualTo(bad + ":2: frees id 1, which was never allocated");
    }

    @Test
    void aPlugInThatIsNotThereIsNamed() throws Exception {
        ProgramRun run = run(script, "doctor", "--class-path", "/none/such.jar");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("/none/such.jar");
    }

    @Test
    void theSameJarsWorkOnTheModulePath() throws Exception {
        ProgramRun run = ProgramRun.of(
                script.resolveSibling("runtime").resolve("bin/java"),
                folder,
                Map.of(),
                "--enable-native-access=io.cistern.cuda,io.cistern.loader,io.cistern.nccl",
                "--module-path",
                script.resolveSibling("lib").toString(),
                "--add-modules=ALL-DEFAULT",
                "--class-path",
                jar.toString(),
                "--module",
                "io.cistern.cli/" + CisternCommand.class.getName(),
                "doctor",
                "--format=json");

        assertThat(run.exitCode()).as(run.err()).isZero();
        for (String name : List.of("caching", "async", "direct", "vmm", "linear", "pages")) {
            assertThat(run.out())
                    .containsPattern(
                            "\"name\":\"" + name + "\",\"origin\":\"module io.cistern[^\"]*\"[^}]*\"available\":true");
        }
        assertThat(run.out()).containsPattern("\"name\":\"acme\",\"origin\":\"[^\"]*acme\\.jar\"");
    }

    @Test
    void aPlugInThatIsNoJarIsNamed() throws Exception {
        Path broken = Files.writeString(folder.resolve("broken.jar"), "no JAR");
        ProgramRun run = run(script, "doctor", "--class-path", broken.toString());

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).singleElement().asString().contains(broken + " is not a JAR");
    }

    /// As a service of the system may be.
    @Test
    void whoHasNoHomeFindsAJdkAsOthersDo() throws Exception {
        ProcessBuilder withoutHome = new ProcessBuilder(
                        Path.of("../..", "bin", "find-jdk").toAbsolutePath().toString())
                .redirectErrorStream(true);
        Path noJdk = Files.createDirectory(folder.resolve("path"));
        Files.writeString(noJdk.resolve("java"), "#!/bin/sh\n");
        assertThat(noJdk.resolve("java").toFile().setExecutable(true)).isTrue();
        withoutHome.environment().keySet().removeAll(List.of("HOME", "JAVA_HOME"));
        withoutHome.environment().merge("PATH", noJdk.toString(), (others, first) -> first + ":" + others);
        Process process = withoutHome.start();

        assertThat(new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                .satisfiesAnyOf(
                        found -> assertThat(Path.of(found.strip(), "bin", "javac"))
                                .exists(),
                        none -> assertThat(none).startsWith("find-jdk: no JDK"));
    }

    private static ProgramRun run(Path script, String... arguments) throws Exception {
        return ProgramRun.of(script, folder, Map.of(), arguments);
    }
}
