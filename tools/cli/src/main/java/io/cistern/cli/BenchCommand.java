package io.cistern.cli;

import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `cistern bench`: what an allocation and a free cost on this machine.
@Command(
        name = "bench",
        description =
                "Measures what an allocation and a free cost through allocators: each scenario in a JVM of its own,"
                        + " warmed up, over several rounds, through the public raw calls with metering on.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
final class BenchCommand implements Callable<Integer> {
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
            description = "JVMs for each scenario and allocator, one after the other; default ${DEFAULT-VALUE}.")
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
                DeviceChoice.open(options.device(), OptionalLong.empty())) { // Closed before others need it.
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
                Progress progress = new Progress("bench", cases * specs.size() * forks, options.err())) {
            for (BenchScenario scenario : scenarios) {
                for (String spec : specs) {
                    progress.message(scenario.label() + " " + spec);
                    List<BenchResult> measured = measure(spec, label, scenario, processors, progress);
                    results.addAll(measured);
                    measured.forEach(result -> writer.write(result.toJson()));
                }
            }
        }
        return results;
    }

    private List<BenchResult> measure(
            String spec, String label, BenchScenario scenario, int processors, Progress progress) {
        Map<BenchCase, List<BenchRow>> rows = new LinkedHashMap<>();
        for (int fork = 0; fork < forks; fork++) {
            int ended = BenchFork.run(
                    BenchForkCommand.arguments(spec, label, scenario, processors, rounds, roundMillis),
                    row -> {
                        rows.computeIfAbsent(row.measured(), _ -> new ArrayList<>())
                                .add(row);
                        progress.step(spec + ", " + row.label());
                    },
                    options.err());
            exitCode = exitCode == ExitCode.OK ? ended : exitCode;
        }
        return rows.values().stream()
                .map(each -> new BenchResult(spec, label, each))
                .toList();
    }
}
