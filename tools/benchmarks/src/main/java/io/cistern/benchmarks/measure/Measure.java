package io.cistern.benchmarks.measure;

import io.cistern.benchmarks.figures.MakeFigures;
import io.cistern.benchmarks.measure.Steps.Step;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPOutputStream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `tools/benchmarks/measure`: runs measurements and makes the pages from their raw output.
@Command(
        name = "measure",
        description = "Measures what pages say, and makes the pages from it.",
        subcommands = Pack.class)
public final class Measure {
    private static final int MIN_SECONDS = 10;
    private static final String DONE = "done";
    /// The column of machine and date in the table of raw output.
    private static final int MACHINE = 3;

    private Measure() {}

    /// Runs the program.
    ///
    /// @param arguments as given on the command line
    public static void main(String[] arguments) {
        System.exit(new CommandLine(new Measure()).execute(arguments));
    }

    /// Returns the folder that contains `peers`, in the sources or in the kit.
    private static Path home() {
        return Path.of(System.getProperty("measure.home", "")).toAbsolutePath();
    }

    static Path root() {
        return home().resolve("../..").normalize();
    }

    @Command(description = "Lists the steps of run: limit in seconds, what they measure, what they need.")
    int list() throws IOException {
        for (Step step : Steps.read(false).all()) {
            String needs = step.needs().isEmpty() ? "" : " (" + String.join(", ", step.needs()) + ")";
            System.out.printf("%-24s%4d  %s%s%n", step.name(), step.seconds(), step.what(), needs);
        }
        return 0;
    }

    @Command(
            description =
                    "Measures, the most important first, and goes on where a run into the same folder ended. What the"
                            + " machine has not got is left out, with a reason.")
    int run(
            @Parameters(paramLabel = "RESULTS", description = "Gets raw output, logs and steps.txt.") Path results,
            @Option(names = "--device", defaultValue = "cuda:0", description = "A GPU, or simulated.") String device,
            @Option(names = "--minutes", defaultValue = "20", description = "For all together.") int minutes,
            @Option(
                            names = "--only",
                            split = ",",
                            defaultValue = "",
                            paramLabel = "STEP",
                            description = "Also if done.")
                    List<String> only,
            @Option(names = "--quick", description = "Rough figures, to try it.") boolean quick)
            throws IOException, InterruptedException {
        Steps steps = Steps.read(quick);
        List<Step> chosen = steps.all().stream()
                .filter(step -> only.equals(List.of("")) || only.contains(step.name()))
                .toList();
        if (chosen.size() < only.size()) {
            System.err.println("measure: unknown step in " + only + ", see measure list");
            return 2;
        }
        Path folder = results.toAbsolutePath();
        Files.createDirectories(folder.resolve("raw"));
        Files.createDirectories(folder.resolve("logs"));
        Machine machine = new Machine(home(), folder, device, steps);
        Files.writeString(
                folder.resolve("machine.txt"),
                Machine.output("sh", "-c", "nvidia-smi; lscpu | grep -E 'Model name|^CPU.s.'; uname -srm"));
        Map<String, String> outcomes = read(folder.resolve("steps.txt"));
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(minutes);
        int failed = 0;
        for (Step step : chosen) {
            if (chosen.size() == steps.all().size()
                    && outcomes.getOrDefault(step.name(), "").startsWith(DONE)) {
                continue;
            }
            System.out.printf("[%d/%d] %s: ", chosen.indexOf(step) + 1, chosen.size(), step.name());
            long begin = System.nanoTime();
            long limit = Math.min(end, begin + TimeUnit.SECONDS.toNanos(step.seconds()));
            String outcome = limit - begin < TimeUnit.SECONDS.toNanos(MIN_SECONDS)
                    ? "not begun, no time left"
                    : measure(
                            step,
                            machine,
                            folder.resolve("logs/" + step.name() + ".txt").toFile(),
                            limit);
            outcome += ", " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin) + " s";
            System.out.println(outcome);
            failed += outcome.startsWith("FAILED") ? 1 : 0;
            outcomes.put(step.name(), outcome);
            Files.write(
                    folder.resolve("steps.txt"),
                    outcomes.entrySet().stream()
                            .map(each -> each.getKey() + ": " + each.getValue())
                            .toList());
        }
        return failed > 0 ? 1 : 0;
    }

    private static Map<String, String> read(Path file) throws IOException {
        Map<String, String> outcomes = new LinkedHashMap<>();
        for (String line : Files.exists(file) ? Files.readAllLines(file) : List.<String>of()) {
            outcomes.put(line.substring(0, line.indexOf(':')), line.substring(line.indexOf(':') + 2));
        }
        return outcomes;
    }

    /// Runs the commands of a step until a deadline.
    private static String measure(Step step, Machine machine, File log, long end)
            throws IOException, InterruptedException {
        for (String need : step.needs()) {
            if (!machine.has(need)) {
                return "left out, no " + need;
            }
        }
        Files.deleteIfExists(log.toPath());
        for (String command : step.commands()) {
            Files.deleteIfExists(machine.output(command, log).toPath());
        }
        String outcome = DONE;
        for (String command : step.commands()) {
            Process process = machine.process(command, log).start();
            if (!process.waitFor(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                process.descendants().forEach(ProcessHandle::destroyForcibly);
                process.destroyForcibly().waitFor();
                return "cut off";
            }
            if (process.exitValue() != 0 && !command.startsWith(Steps.MAY_FAIL) && outcome.equals(DONE)) {
                outcome = "FAILED, status " + process.exitValue() + " of: " + command;
            }
        }
        return outcome;
    }

    @Command(
            description =
                    "Puts raw output into docs/measurements/raw, notes machine and day in its row of the table there, and"
                            + " makes the pages.")
    int keep(
            @Option(names = "--machine", required = true, description = "As in \"An H200\".") String machine,
            @Parameters(index = "0", paramLabel = "NAME", description = "The file there, such as replays.jsonl.")
                    String name,
            @Parameters(index = "1..*", arity = "1..*", paramLabel = "FILE", description = "What it gets, in turn.")
                    List<Path> files)
            throws IOException {
        Path measurements = root().resolve("docs/measurements");
        List<String> lines = new ArrayList<>();
        for (Path file : files) {
            List<String> own = Files.readAllLines(file);
            boolean headerAgain = name.endsWith(".csv") && !lines.isEmpty();
            lines.addAll(own.subList(headerAgain ? 1 : 0, own.size()));
        }
        try (OutputStream out =
                new GZIPOutputStream(Files.newOutputStream(measurements.resolve("raw/" + name + ".gz")))) {
            out.write((String.join("\n", lines) + "\n").getBytes(StandardCharsets.UTF_8));
        }
        Path table = measurements.resolve("README.md");
        List<String> rows = new ArrayList<>(Files.readAllLines(table));
        rows.replaceAll(row -> row.contains("(raw/" + name + ".gz)") ? dated(row, machine) : row);
        Files.write(table, rows);
        return figures();
    }

    private static String dated(String row, String machine) {
        String[] cells = row.split("\\|", -1);
        cells[MACHINE] = " " + machine + ", " + LocalDate.now(ZoneOffset.UTC) + " ";
        return String.join("|", cells);
    }

    @Command(
            description =
                    "Makes the tables of README.md and docs/*.md, and the charts, from docs/measurements/raw; lists"
                            + " figures that have no source there.")
    int figures() throws IOException {
        MakeFigures.make(root());
        return 0;
    }
}
