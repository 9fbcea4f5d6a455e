package io.cistern.cli;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// What [BenchCommand] runs in a JVM of its own: the cases of one scenario through one allocator.
@Command(name = BenchForkCommand.NAME, hidden = true)
final class BenchForkCommand implements Callable<Integer> {
    static final String NAME = "bench-fork";

    @Spec
    private @Nullable CommandSpec command;

    @Option(names = "--allocator", required = true)
    private String allocator = "";

    @Option(names = "--device", required = true)
    private String device = "";

    @Option(names = "--scenario", required = true)
    private BenchScenario scenario = BenchScenario.PAIR;

    @Option(names = "--processors", required = true)
    private int processors;

    @Option(names = "--rounds", required = true)
    private int rounds;

    @Option(names = "--round-millis", required = true)
    private int roundMillis;

    /// The line that makes another JVM run this.
    static List<String> arguments(
            String allocator, String device, BenchScenario scenario, int processors, int rounds, int roundMillis) {
        return List.of(
                NAME,
                "--allocator=" + allocator,
                "--device=" + device,
                "--scenario=" + scenario.label(),
                "--processors=" + processors,
                "--rounds=" + rounds,
                "--round-millis=" + roundMillis);
    }

    @Override
    public Integer call() {
        PrintWriter out = Objects.requireNonNull(command).commandLine().getOut();
        Plugins.prepareFor(List.of(allocator));
        try (ReplayDevice gpu = DeviceChoice.open(device, OptionalLong.empty())) {
            BenchMeasurement measurement = new BenchMeasurement(
                    gpu, Plugins.catalog(), allocator, rounds, TimeUnit.MILLISECONDS.toNanos(roundMillis));
            for (BenchCase each : scenario.cases(processors)) {
                out.print('\n' + measurement.measure(each).toLine() + '\n'); // Native code may have begun a line.
                out.flush();
            }
            return ExitCode.OK;
        } catch (DeviceOutOfMemoryException e) {
            Objects.requireNonNull(command)
                    .commandLine()
                    .getErr()
                    .println("cistern: " + scenario.label() + " through " + allocator + ": " + e.getMessage());
            return ExitCode.ALLOCATION_FAILED;
        }
    }
}
