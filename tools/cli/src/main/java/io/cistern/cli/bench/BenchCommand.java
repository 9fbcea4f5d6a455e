package io.cistern.cli.bench;

import io.cistern.cli.common.AllocatorChoice;
import io.cistern.cli.common.DeviceChoice;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.MeasureOptions;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.Progress;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.common.Version;
import io.cistern.cli.common.Work;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `cistern bench`: measures the cost of an allocation and a free on this machine.
@Command(
        name = "bench",
        description =
                "Measures what an allocation and a free cost through allocators: each case in JVMs of its own by JMH,"
                        + " warmed up, over several rounds, through the public raw calls with metering on.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
public final class BenchCommand implements Callable<Integer> {
    @Mixin
    private MeasureOptions options = new MeasureOptions();

    @Option(
            names = "--scenario",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "pair,mixed,threads,handoff,scale",
            description = "pair, mixed, threads, handoff, scale, or several with commas. Default: all.")
    private List<BenchScenario> scenarios = new ArrayList<>();

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "5",
            description = "Rounds that are timed in each JVM; default ${DEFAULT-VALUE}.")
    private int rounds = 5;

    @Option(
            names = "--round-millis",
            paramLabel = "N",
            defaultValue = "50",
            description = "How long a round lasts, about; default ${DEFAULT-VALUE}.")
    private int roundMillis = 50;

    @Option(
            names = "--forks",
            paramLabel = "N",
            defaultValue = "1",
            description = "JVMs for each case and allocator, one after the other; default ${DEFAULT-VALUE}.")
    private int forks = 1;

    private int exitCode = ExitCode.OK;

    @Override
    public Integer call() {
        checkRange("--rounds", rounds, 1_000);
        checkRange("--round-millis", roundMillis, 60_000);
        checkRange("--forks", forks, 100);
        List<String> specs;
        String label;
        try (ReplayDevice gpu =
                DeviceChoice.open(options.device(), OptionalLong.empty())) { // Closed before other JVMs need it.
            specs = specs(gpu);
            label = gpu.label();
            gpu.notice().ifPresent(options::tell);
        }
        List<BenchResult> results = measureAll(specs, label);
        if (options.format() == OutputFormat.TEXT && !results.isEmpty()) {
            options.out().print(BenchTable.format(results));
            options.out().flush();
        }
        return exitCode;
    }

    private List<String> specs(ReplayDevice gpu) {
        Catalog catalog = Plugins.catalog();
        List<String> specs = new AllocatorChoice(gpu, catalog, Work.NONE).specs(options.allocators());
        boolean firstOnly = options.allocators().isEmpty() && gpu instanceof ReplayDevice.Simulated;
        return firstOnly ? specs.subList(0, 1) : specs;
    }

    private static void checkRange(String option, int value, int most) {
        if (value < 1 || value > most) {
            throw new UsageException(option + " must be 1 to " + most + ", not " + value);
        }
    }

    private List<BenchResult> measureAll(List<String> specs, String label) {
        int processors = Runtime.getRuntime().availableProcessors();
        long cases = scenarios.stream()
                .mapToLong(scenario -> scenario.cases(processors).size())
                .sum();
        List<BenchResult> results = new ArrayList<>();
        try (ResultWriter writer = options.results();
                Progress progress = new Progress("bench", cases * specs.size(), options.err())) {
            for (BenchScenario scenario : scenarios) {
                for (String spec : specs) {
                    progress.message(scenario.label() + " " + spec);
                    BenchRun run = new BenchRun(spec, label, rounds, roundMillis, forks);
                    for (BenchCase each : scenario.cases(processors)) {
                        measure(run, each, options.judged(specs), progress).ifPresent(result -> {
                            results.add(result);
                            writer.write(result.fields());
                        });
                    }
                }
            }
        }
        return results;
    }

    private Optional<BenchResult> measure(BenchRun run, BenchCase each, List<String> judged, Progress progress) {
        try {
            BenchResult result = run.measure(each);
            progress.step(
                    run.spec() + ", " + each.label() + ": " + BenchTable.nanos(result.nanosPerPair()) + " ns a pair");
            return Optional.of(result);
        } catch (BenchFailure e) {
            options.err().println(e.getMessage());
            if (exitCode == ExitCode.OK && judged.contains(run.spec())) {
                exitCode = e.exitCode();
            }
            return Optional.empty();
        }
    }
}
