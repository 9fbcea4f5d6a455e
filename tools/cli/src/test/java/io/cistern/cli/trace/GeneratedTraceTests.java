package io.cistern.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.generated.GeneratedTrace;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Traces that are generated to fragment memory, and what `caching` makes of them on a device that they nearly fill.
final class GeneratedTraceTests {
    private static final long CAPACITY_BYTES = 4L << 30;
    private static final Pattern RATIO = Pattern.compile("\"ratio\":([0-9.]+)");

    @TempDir
    private Path folder;

    @ParameterizedTest
    @EnumSource
    void aSeedGivesTheSameTraceAgainAndAnotherOneAnother(GeneratedTrace generated) {
        Trace one = GeneratedTraces.build(generated, 1, CAPACITY_BYTES);

        assertThat(GeneratedTraces.build(generated, 1, CAPACITY_BYTES).byteSizes())
                .isEqualTo(one.byteSizes());
        assertThat(GeneratedTraces.build(generated, 2, CAPACITY_BYTES).byteSizes())
                .isNotEqualTo(one.byteSizes());
    }

    @ParameterizedTest
    @EnumSource
    void noneWantsMoreThanTheDeviceHas(GeneratedTrace generated) {
        assertThat(GeneratedTraces.build(generated, 1, CAPACITY_BYTES).requestedPeakBytes())
                .isBetween(CAPACITY_BYTES / 32, CAPACITY_BYTES / 100 * 95 + 100);
    }

    @Test
    void theSawtoothReaches95PercentOfTheDevice() {
        assertThat(GeneratedTraces.build(GeneratedTrace.SAWTOOTH, 1, CAPACITY_BYTES)
                        .requestedPeakBytes())
                .isGreaterThan((long) (0.949 * CAPACITY_BYTES));
    }

    @Test
    void aThousandStreamsComeAndGoAndFewAreThereAtOnce() {
        Trace trace = GeneratedTraces.build(GeneratedTrace.SHORT_STREAMS, 1, CAPACITY_BYTES);
        int ends = 0;
        for (byte op : trace.ops()) {
            ends += op == Trace.END ? 1 : 0;
        }

        assertThat(ends).isEqualTo(1_000);
        assertThat(trace.streamCount()).isBetween(2, 3);
    }

    @ParameterizedTest
    @EnumSource
    void whatTheCommandWritesIsTheSameTrace(GeneratedTrace generated) throws IOException, InputException {
        ProgramRun run = ProgramRun.inProcess("trace", generated.label(), "--capacity=1GiB", "--seed=7");
        Trace read = TraceReader.read(
                "written.csv", new ByteArrayInputStream(run.out().getBytes(StandardCharsets.US_ASCII)));
        Trace built = GeneratedTraces.build(generated, 7, 1L << 30);

        assertThat(run.err()).isEmpty();
        assertThat(read.ops()).isEqualTo(built.ops());
        assertThat(read.byteSizes()).isEqualTo(built.byteSizes());
        assertThat(read.streams()).isEqualTo(built.streams());
        assertThat(read.slots()).isEqualTo(built.slots());
    }

    /// Three times over, on a device that the sawtooth fills to 95 percent.
    @ParameterizedTest
    @EnumSource
    void cachingServesItAgainAndAgainWithBoundedReservedMemory(GeneratedTrace generated) {
        ProgramRun run = ProgramRun.inProcess(
                "replay",
                generated.label(),
                "--device=simulated",
                "--capacity=" + CAPACITY_BYTES,
                "--allocator=caching",
                "--repeat=3",
                "--format=jsonl");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("\"failures\":0,").contains("\"unreturnedBytes\":0");
        Matcher ratio = RATIO.matcher(run.out());
        assertThat(ratio.find()).isTrue();
        assertThat(Double.parseDouble(ratio.group(1))).isBetween(1.0, 1.37);
    }

    @Test
    void aSeriesHasWhatWasRequestedAndReservedOverTheFirstPass() throws IOException {
        Path series = folder.resolve("series.csv");
        ProgramRun run = ProgramRun.inProcess(
                "replay", "drifting", "--device=simulated", "--allocator=caching", "--series=" + series);
        List<String> lines = Files.readAllLines(series);

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(lines.getFirst()).isEqualTo("trace,allocator,device,operation,requestedBytes,reservedBytes");
        assertThat(lines).hasSizeBetween(350, 450);
        assertThat(lines.subList(1, lines.size())).allSatisfy(line -> {
            String[] cells = line.split(",", -1);
            assertThat(line).startsWith("drifting,\"caching\",simulated,");
            assertThat(Long.parseLong(cells[5])).isGreaterThanOrEqualTo(Long.parseLong(cells[4]));
        });
    }

    /// Standard output is a file most often.
    @Test
    void aDeviceThatIsTooSmallGetsNoHeaderEither() {
        ProgramRun run = ProgramRun.inProcess("trace", "sawtooth", "--capacity=1MiB");

        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.out()).isEmpty();
        assertThat(run.err()).contains("--capacity must be at least 64MiB");
    }

    @Test
    void anUnknownNameIsAnsweredWithTheKnownOnes() {
        ProgramRun run = ProgramRun.inProcess("trace", "saw");

        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.err()).contains("'saw'", "sawtooth", "long_lived");
    }
}
