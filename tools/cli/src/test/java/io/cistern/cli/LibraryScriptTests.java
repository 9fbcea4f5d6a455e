package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Shared libraries and plug-in directories through the script. The library prints on C's standard output, which is
/// buffered until the process ends, and results are clean all the same.
final class LibraryScriptTests {
    private static final String CARELESS = """
            #include <stdio.h>
            #include <stdlib.h>
            #include <sys/types.h>
            void* my_malloc(ssize_t size, int device, void* stream) {
                void* p;
                printf("took %zd\\n", size);
                return posix_memalign(&p, 256, size) ? 0 : p;
            }
            void my_free(void* p, ssize_t size, int device, void* stream) { printf("gave %zd\\n", size); free(p); }
            """;

    @TempDir
    private static Path folder;

    private static Path script;
    private static Path library;
    private static Path trace;

    @BeforeAll
    static void layOut() throws Exception {
        Assumptions.assumeTrue(CCompiler.find().isPresent(), "no C compiler on the path");
        script = ProgramRun.layOut(Files.createDirectories(folder.resolve("home")));
        Path plugins = Files.createDirectories(folder.resolve("plugins"));
        library = CCompiler.find().orElseThrow().library(plugins.resolve("libcareless.so"), CARELESS);
        Files.setPosixFilePermissions(plugins, PosixFilePermissions.fromString("rwxr-xr-x")); // whatever the umask
        Files.setPosixFilePermissions(library, PosixFilePermissions.fromString("rw-r--r--"));
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
    void aLibraryIsReplayedAndItsPrintingIsNoResult() throws Exception {
        ProgramRun run = run(
                "replay",
                trace.toString(),
                "--device=simulated",
                "--allocator=library:path=" + library,
                "--format=jsonl");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines())
                .singleElement()
                .asString()
                .startsWith("{\"trace\":\"tiny\"")
                .contains("\"failures\":0", "\"reservedPeakBytes\":null", "\"ratio\":null");
        assertThat(run.err()).contains("took 3000000", "gave 500");
    }

    @Test
    void aDroppedLibraryIsListedAndReplayedByItsName() throws Exception {
        String plugins = "-Dcistern.plugins=" + library.getParent();
        ProgramRun doctor = run("doctor", plugins, "--format=json");
        assertThat(doctor.out())
                .containsPattern("\"name\":\"careless\",\"origin\":\"[^\"]*libcareless.so, sha256 [0-9a-f]{12}\"")
                .contains("{\"key\":\"cistern.plugins\",\"value\":\"" + library.getParent()
                        + "\",\"source\":\"property cistern.plugins\",\"followed\":true}")
                .contains("{\"key\":\"cistern.leaks\",\"value\":\"off\",\"source\":\"default\",\"followed\":true}");

        ProgramRun replay = run(
                "replay", plugins, trace.toString(), "--device=simulated", "--allocator=careless", "--format=jsonl");
        assertThat(replay.exitCode()).as(replay.err()).isZero();
        assertThat(replay.out().lines()).singleElement().asString().contains("\"allocator\":\"careless\"");
    }

    @Test
    void workThatNeedsMemoryOfTheDeviceIsRefusedWithTheReason() throws Exception {
        ProgramRun run = run(
                "replay",
                trace.toString(),
                "--device=simulated",
                "--work=check",
                "--allocator=library:path=" + library);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err())
                .contains("--work check needs device memory, but the simulated GPU does not know the memory that"
                        + " this allocator hands out");
    }

    @Test
    void whatCannotBeLoadedEndsWithTwoAndOneLine() throws Exception {
        Path crash = CCompiler.find().orElseThrow().library(folder.resolve("crash.so"), """
                        #include <signal.h>
                        __attribute__((constructor)) static void start(void) { raise(SIGSEGV); }
                        """);
        Path text = Files.writeString(folder.resolve("text.so"), "no library");
        for (String spec : new String[] {"path=" + crash, "path=" + text, "path=" + library + ",malloc=nothing"}) {
            ProgramRun run = run("replay", trace.toString(), "--device=simulated", "--allocator=library:" + spec);
            assertThat(run.exitCode()).as(spec).isEqualTo(2);
            assertThat(run.err().lines())
                    .singleElement()
                    .asString()
                    .startsWith("cistern: --allocator library:" + spec + ": library /");
        }
    }

    @Test
    void whatTakesTheProcessAlongEndsWith134() throws Exception {
        Path aborts = CCompiler.find().orElseThrow().library(folder.resolve("aborts.so"), """
                        #include <stdlib.h>
                        #include <sys/types.h>
                        void* my_malloc(ssize_t size, int device, void* stream) { abort(); }
                        void my_free(void* p, ssize_t size, int device, void* stream) {}
                        """);
        ProgramRun run = run("replay", trace.toString(), "--device=simulated", "--allocator=library:path=" + aborts);
        assertThat(run.exitCode()).isEqualTo(134);
    }

    @Test
    void aStrictDoctorRefusesAPlugInThatCannotBeUsed() throws Exception {
        Path plugins = Files.createDirectories(folder.resolve("broken"));
        Files.writeString(plugins.resolve("libbroken.so"), "no library");
        ProgramRun run = run("doctor", "--strict", "-Dcistern.plugins=" + plugins);
        assertThat(run.exitCode()).isEqualTo(5);
        assertThat(run.out()).containsPattern("Problems\\n.*libbroken.so: ");
        assertThat(run("doctor", "-Dcistern.plugins=" + plugins).exitCode()).isZero();
    }

    @Test
    void aKeyThatIsNoSettingEndsWithTwoAndTheNearest() throws Exception {
        ProgramRun run = run("replay", "-Dcistern.alocator=async", trace.toString(), "--device=simulated");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().strip())
                .isEqualTo("cistern: property cistern.alocator: there is no setting 'cistern.alocator'; known, nearest"
                        + " first: cistern.allocator, cistern.leaks, cistern.limit, …");
        assertThat(run("doctor", "-Dcistern.alocator=async").exitCode()).isZero();
    }

    private static ProgramRun run(String... arguments) throws Exception {
        return ProgramRun.of(script, folder, Map.of(), arguments);
    }
}
