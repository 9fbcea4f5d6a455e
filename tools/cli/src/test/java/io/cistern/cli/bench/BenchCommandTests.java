package io.cistern.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import io.cistern.cli.common.ExitCode;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What `cistern bench` prints and how it ends, on the simulated GPU. That its figures are right, only a quiet
/// machine can tell; that they are there, consistent, and of the case they name, is told here.
final class BenchCommandTests {
    /// What two tests look at: each case takes a JVM of its own.
    private static ProgramRun run;

    @BeforeAll
    static void measure() {
        run = bench("--scenario=mixed,handoff", "--allocator=caching", "--format=jsonl");
    }

    @Test
    void everyScenarioHasARowForEachCase() {
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines()).hasSize(2);
        assertThat(run.out())
                .contains("{\"scenario\":\"mixed\",\"variant\":\"exchange\",\"allocator\":\"caching\","
                        + "\"device\":\"simulated\",\"threads\":1,\"byteSize\":1048576,\"liveBlocks\":64,")
                .contains("{\"scenario\":\"handoff\",\"variant\":\"handoff\",\"allocator\":\"caching\","
                        + "\"device\":\"simulated\",\"threads\":2,\"byteSize\":4096,\"liveBlocks\":0,");
        assertThat(run.out().lines())
                .allMatch(line -> line.matches(".*\"nanosPerPair\":[1-9].*\"rounds\":2,\"forks\":1,"
                        + "\"pairsPerSecond\":[1-9].*\"p999Nanos\":[1-9].*\"garbageBytesPerPair\":[0-9].*"));
    }

    /// It takes minutes, and standard error need not be a terminal.
    @Test
    void eachRowIsToldOnStandardErrorOnceItIsMeasured() {
        assertThat(run.err().lines())
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo(ProgramRun.SIMULATED_NOTICE),
                        line -> assertThat(line)
                                .matches("cistern: bench 1 of 2: caching, mixed exchange, 1 thread, up to 1.00 MiB,"
                                        + " 64 blocks alive: [0-9.,]+ ns a pair"),
                        line -> assertThat(line)
                                .matches("cistern: bench 2 of 2: caching, handoff, 2 threads, up to 4.00 KiB:"
                                        + " [0-9.,]+ ns a pair"));
    }

    @Test
    void theTableNamesTheCasesAndTheMethod() {
        ProgramRun run = bench("--scenario=mixed");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines().skip(2).findFirst().orElseThrow())
                .startsWith("mixed     exchange     caching          1  1.00 MiB      64");
        assertThat(run.out()).contains("On a simulated GPU the driver takes virtual time", "2 rounds", "p99.9");
        assertThat(run.out().lines()).allMatch(line -> line.length() <= 130);
    }

    @Test
    void allocatorsAreMeasuredInTheOrderGiven() {
        ProgramRun run = bench("--scenario=mixed", "--allocator=direct", "--allocator=caching", "--format=jsonl");

        assertThat(run.out().lines().map(line -> line.replaceAll(".*\"allocator\":\"(\\w+)\".*", "$1")))
                .containsExactly("direct", "caching");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        --allocator=cachin      | caching
        --scenario=pairs        | pairs
        --device=cuda:99        | cuda:99
        --rounds=0              | --rounds
        --round-millis=-1       | --round-millis
        --forks=0               | --forks
        --format=xml            | xml
        """)
    void badUsageIsOneLineThatNamesTheMistake(String argument, String named) {
        ProgramRun run = ProgramRun.inProcess("bench", argument);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).singleElement().asString().contains(named);
    }

    @Test
    void aJvmThatFailsGivesItsExitCodeAndMessage() {
        ProgramRun run = bench("--scenario=mixed", "--allocator=limit:bytes=64KiB,upstream=direct", "--format=jsonl");

        assertThat(run.exitCode()).isEqualTo(ExitCode.ALLOCATION_FAILED);
        assertThat(run.out()).isEmpty();
        assertThat(run.err()).contains("cistern: mixed through limit:bytes=64KiB,upstream=direct: ");
    }

    private static ProgramRun bench(String... options) {
        return ProgramRun.inProcess(java.util.stream.Stream.concat(
                        java.util.stream.Stream.of("bench", "--device=simulated", "--rounds=2", "--round-millis=2"),
                        java.util.stream.Stream.of(options))
                .toArray(String[]::new));
    }
}
