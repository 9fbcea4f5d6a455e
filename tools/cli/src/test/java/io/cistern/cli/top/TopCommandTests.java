package io.cistern.cli.top;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.ProgramRun;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/// `cistern top` looks at JVMs that run: one with a bean of its device memory, one without.
final class TopCommandTests {
    private static Process watched;
    private static Process bare;

    @BeforeAll
    static void startPrograms() throws IOException {
        watched = start();
        bare = start("bare");
        for (Process program : List.of(watched, bare)) {
            BufferedReader out = program.inputReader(StandardCharsets.UTF_8);
            assertThat(out.readLine()).isEqualTo("ready");
        }
    }

    private static Process start(String... arguments) throws IOException {
        return new ProcessBuilder(Stream.concat(
                                Stream.of(
                                        Path.of(System.getProperty("java.home"), "bin", "java")
                                                .toString(),
                                        "-XX:TieredStopAtLevel=1",
                                        "-XX:+UseSerialGC",
                                        "--enable-native-access=ALL-UNNAMED",
                                        "-cp",
                                        System.getProperty("java.class.path"),
                                        TopTarget.class.getName()),
                                Stream.of(arguments))
                        .toList())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    @AfterAll
    static void endPrograms() throws Exception {
        for (Process program : List.of(watched, bare)) {
            program.outputWriter().close();
            assertThat(program.waitFor(1, TimeUnit.MINUTES)).isTrue();
        }
    }

    @Test
    void ratesAndFiguresAreTheProgramsOwn() throws Exception {
        ProgramRun run = top(watched.pid() + " --once --interval=0.5 --format=jsonl");

        assertThat(run.exitCode()).as(run.err()).isZero();
        Map<String, Object> memory = JSON.std.mapFrom(run.out());
        assertThat(memory).containsEntry("memory", "trainer").containsEntry("pid", (int) watched.pid());
        Map<String, Object> onSecond = ofDevice(memory, "allocators", 1);
        assertThat(onSecond)
                .containsEntry("allocator", "caching")
                .containsEntry("pool", "")
                .containsEntry("current", true)
                .hasEntrySatisfying(
                        "hitPercents", tiers -> assertThat(tiers).asString().contains("shard="));
        assertThat(number(onSecond, "liveBlocks")).isBetween(3.0, 4.0);
        assertThat(number(onSecond, "requestedBytes"))
                .isBetween(3.0 * TopTarget.BLOCK_BYTES, 4.0 * TopTarget.BLOCK_BYTES);
        assertThat(number(onSecond, "requestedPeakBytes")).isEqualTo(4.0 * TopTarget.BLOCK_BYTES);
        assertThat(number(onSecond, "reservedBytes")).isGreaterThanOrEqualTo(4.0 * TopTarget.BLOCK_BYTES);
        assertThat(number(onSecond, "allocationsPerSecond")).isBetween(1.0, 600.0);
        assertThat(number(onSecond, "freesPerSecond")).isBetween(1.0, 600.0);
        assertThat(ofDevice(memory, "allocators", 0)).containsEntry("allocationsPerSecond", 0.0);
        assertThat(number(ofDevice(memory, "devices", 1), "freeBytes"))
                .isLessThan(number(ofDevice(memory, "devices", 1), "totalBytes"));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> ofDevice(Map<String, Object> memory, String list, int device) {
        return ((List<Map<String, Object>>) memory.get(list))
                .stream()
                        .filter(each -> each.get("device").equals(device))
                        .findFirst()
                        .orElseThrow();
    }

    private static double number(Map<String, Object> fields, String name) {
        return ((Number) fields.get(name)).doubleValue();
    }

    @Test
    void aTableIsForPeople() {
        ProgramRun run = top(watched.pid() + " --once --interval=0.1 --sort=live");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out())
                .contains("gpu 0 Simulated NVIDIA H200: 140 GiB, ", "gpu 1 Simulated NVIDIA H200: 140 GiB, ")
                .containsPattern(
                        "\n +MiB +MiB +MiB +MiB +MiB\ngpu +allocator +live\\* +allocs/s +frees/s +requested +peak +reserved"
                                + " +max free +stranded +hits %\n1 +>caching +[34] +[\\d,]+ +[\\d,]+ +[34]\\.00 +4\\.00 ")
                .contains("hits %: of the requests that reach ");
    }

    @Test
    void programsThatShowDeviceMemoryAreListed() {
        StringWriter out = new StringWriter();
        TopCommand command = new TopCommand();
        new CommandLine(command).setOut(new PrintWriter(out));

        command.list(Stream.of(watched, bare).map(program -> Long.toString(program.pid())));

        assertThat(out.toString().lines())
                .hasSize(2)
                .last()
                .asString()
                .matches(watched.pid() + " +trainer +io\\.cistern\\.cli\\.top\\.TopTarget");
    }

    @Test
    void theProgramWritesASnapshot(@TempDir Path folder) throws Exception {
        try (AttachedJvm program = AttachedJvm.attach(Long.toString(watched.pid()))) {
            String written = program.snapshot(folder);

            assertThat(written).matches("written: " + folder + "/cistern-" + watched.pid() + "-trainer-\\d{6}\\.json");
            assertThat(Path.of(written.substring("written: ".length())))
                    .content()
                    .contains("caching");
        }
    }

    @Test
    void aProgramWithoutTheBeanIsToldHow() {
        ProgramRun run = top(bare.pid() + " --once");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err())
                .startsWith("cistern: process " + bare.pid() + " shows no device memory; a program shows it with"
                        + " -Dcistern.observe=jmx");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        1 --interval=0           | --interval must be above 0 and at most 3600, not 0
        1 --interval=much        | much
        1 --sort=colour          | 'colour' is not one of these
        99999999 --once          | process 99999999 can't be inspected:
        """)
    void badUsageIsOneLineThatNamesTheMistake(String line, String named) {
        ProgramRun run = top(line);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).singleElement().asString().contains(named);
    }

    private static ProgramRun top(String line) {
        return ProgramRun.inProcess(("top " + line).split(" "));
    }
}
