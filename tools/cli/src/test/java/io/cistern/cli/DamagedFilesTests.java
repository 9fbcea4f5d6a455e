package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.trace.TraceReader;
import io.cistern.cuda.settings.Setting;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;

/// Every file that a command or a setting reads may be damaged. Then the program says in one line which file, where
/// and what is wrong, and exits with the code for bad input; it never ends in a stack trace, in a loop, or in memory
/// that a number in the file asked for.
final class DamagedFilesTests {
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);
    private static final int DRAWN = 60;
    private static final int DRAWN_FOR_LONG = 20_000;
    private static final int MAX_SECONDS = 20;
    private static final int SECONDS_FOR_ALL = 600;
    /// Of one run, with all that a command needs apart from the file: `report` replays it some fifty times.
    private static final long MAX_ALLOCATED_BYTES = 1L << 30;

    /// The arguments that name files to be read.
    static final Map<String, Reader> READERS = readers();

    /// The arguments that name files to be written.
    private static final Set<String> OUTPUTS = Set.of(
            "import --output",
            "report --output",
            "replay --series",
            "replay --snapshot",
            "replay --html",
            "fit --html");

    /// The settings that name files to be read, each with a sample; of plug-ins, the file lies in the directory.
    /// Shared libraries are read by the dynamic linker.
    private static final Map<Setting, String> FILE_SETTINGS = Map.of(
            Setting.CONFIG, "settings.properties", Setting.PLUGINS, "acme.jar", Setting.PLUGINS_ALLOWED, "allowed");

    @TempDir
    private static Path folder;

    private static Samples samples;

    /// @param reads whether a sample is of its kind
    /// @param line the command, to which the file's name is added
    record Reader(Predicate<String> reads, Set<Integer> exitCodes, String... line) {}

    private static Map<String, Reader> readers() {
        Map<String, Reader> readers = new LinkedHashMap<>();
        readers.put(
                "import FILE",
                new Reader(name -> name.startsWith("rmm-") || name.startsWith("torch-"), Set.of(0, 2), "import"));
        readers.put(
                "fit FILE",
                new Reader(
                        name -> name.startsWith("rmm-") || name.startsWith("torch-") || name.startsWith("trace-"),
                        Set.of(0, 2, 3),
                        "fit",
                        "--allocator=direct"));
        readers.put(
                "report SNAPSHOT",
                new Reader(name -> name.startsWith("snapshot-") || name.startsWith("torch-"), Set.of(0, 2), "report"));
        readers.put(
                "replay FILE",
                new Reader(
                        name -> name.startsWith("trace-"),
                        Set.of(0, 2, 3),
                        "replay",
                        "--device=simulated",
                        "--allocator=direct",
                        "--capacity=64MiB",
                        "--work=check",
                        "--repeat=1"));
        return readers;
    }

    @BeforeAll
    static void makeSamples() throws IOException {
        samples = new Samples(folder);
    }

    @Test
    void everyArgumentThatNamesAFileIsTested() {
        assertThat(fileArguments(CisternCommand.commandLine(), ""))
                .containsExactlyInAnyOrderElementsOf(Stream.concat(READERS.keySet().stream(), OUTPUTS.stream())
                        .toList());
    }

    private static List<String> fileArguments(CommandLine command, String name) {
        List<String> found = new ArrayList<>();
        for (ArgSpec argument : command.getCommandSpec().args()) {
            boolean isFile = Stream.concat(Stream.of(argument.type()), Arrays.stream(argument.auxiliaryTypes()))
                    .anyMatch(type -> type == Path.class || type == File.class);
            if (isFile) {
                found.add(name
                        + (argument instanceof CommandLine.Model.OptionSpec option
                                ? option.longestName()
                                : argument.paramLabel()));
            }
        }
        command.getSubcommands().forEach((inner, each) -> found.addAll(fileArguments(each, name + inner + " ")));
        return found;
    }

    @Test
    void everySettingThatNamesAFileIsTested() {
        assertThat(Setting.values())
                .filteredOn(setting -> setting.legal().contains("path"))
                .filteredOn(setting -> !setting.key().endsWith(".library"))
                .containsExactlyInAnyOrderElementsOf(FILE_SETTINGS.keySet());
    }

    @Test
    void everySampleAmongTheResourcesIsRead() {
        assertThat(samples.names())
                .allMatch(name -> FILE_SETTINGS.containsValue(name)
                        || READERS.values().stream().anyMatch(reader -> reader.reads.test(name)));
    }

    @ParameterizedTest
    @MethodSource("fileSettings")
    @Timeout(value = SECONDS_FOR_ALL, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aDamagedFileOfASettingIsRefusedInALine(Setting setting) throws Exception {
        String sample = FILE_SETTINGS.get(setting);
        Path plugins = Files.createDirectories(folder.resolve("plugins-" + sample));
        Path trace = Files.write(folder.resolve("trace-1.csv"), samples.bytes("trace-1.csv"));
        Map<Setting, Path> files = new EnumMap<>(Map.of(setting, plugins.resolve(sample)));
        if (setting != Setting.CONFIG) {
            Files.write(plugins.resolve("acme.jar"), samples.bytes("acme.jar"));
            files.put(Setting.PLUGINS, plugins);
        }
        int number = 0;
        for (byte[] damaged : (Iterable<byte[]>) Damage.of(samples.bytes(sample), SEED, DRAWN)::iterator) {
            Files.write(plugins.resolve(sample), damaged);
            String which = "number " + number++ + " of seed " + SEED;
            ProgramRun run = with(
                    files,
                    "replay",
                    trace.toString(),
                    "--device=simulated",
                    "--work=check",
                    "--repeat=1",
                    "--capacity=64MiB",
                    "--allocator=" + (setting == Setting.CONFIG ? "direct" : "acme"));
            assertThat(run.exitCode()).as(which + ": " + run.err()).isIn(0, 2, 3);
            if (run.exitCode() == 2) {
                assertThat(run.err().lines()).as(which).hasSize(1);
                assertThat(run.err()).as(which).contains(sample).doesNotContain("Exception", "java.");
            }
        }
    }

    static Set<Setting> fileSettings() {
        return FILE_SETTINGS.keySet();
    }

    private static ProgramRun with(Map<Setting, Path> files, String... line) {
        files.forEach((setting, file) -> System.setProperty(setting.key(), file.toString()));
        try {
            return ProgramRun.inProcess(line);
        } finally {
            files.keySet().forEach(setting -> System.clearProperty(setting.key()));
        }
    }

    /// Also by another name.
    @ParameterizedTest
    @MethodSource("outputs")
    void noOutputOverwritesAnInput(String output) throws Exception {
        String command = output.substring(0, output.indexOf(' '));
        String argument = READERS.keySet().stream()
                .filter(name -> name.startsWith(command + " "))
                .findFirst()
                .orElseThrow();
        String sample = samples.names().stream()
                .filter(READERS.get(argument).reads)
                .findFirst()
                .orElseThrow();
        Path file = Files.write(folder.resolve("kept-" + sample), samples.bytes(sample));
        Path link = Files.createSymbolicLink(folder.resolve(output.replace(' ', '-')), file);
        for (Path named : List.of(file, link)) {
            List<String> line = new ArrayList<>(List.of(READERS.get(argument).line));
            line.addAll(List.of(file.toString(), output.substring(output.indexOf(' ') + 1), named.toString()));

            ProgramRun run = ProgramRun.inProcess(line.toArray(String[]::new));

            assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
            assertThat(run.err().lines())
                    .singleElement()
                    .asString()
                    .contains(named.toString())
                    .endsWith("can't be written: it is an input, and would be overwritten");
            assertThat(file).hasBinaryContent(samples.bytes(sample));
        }
    }

    static Set<String> outputs() {
        return OUTPUTS;
    }

    static Stream<Arguments> files() {
        return READERS.entrySet().stream()
                .flatMap(reader -> samples.names().stream()
                        .filter(reader.getValue().reads)
                        .map(sample -> Arguments.of(reader.getKey(), sample)));
    }

    @ParameterizedTest
    @MethodSource("files")
    void aWholeFileIsRead(String argument, String sample) throws Exception {
        ProgramRun run = read(argument, Files.write(folder.resolve(sample), samples.bytes(sample)));

        assertThat(run.exitCode()).as(run.err()).isIn(argument.startsWith("fit") ? Set.of(0, 3) : Set.of(0));
    }

    @ParameterizedTest
    @MethodSource("files")
    @Timeout(value = SECONDS_FOR_ALL, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aDamagedFileIsRefusedInALine(String argument, String sample) throws Exception {
        readDamaged(argument, sample, DRAWN);
    }

    @ParameterizedTest
    @MethodSource("files")
    @Tag("long")
    void manyDamagedFilesAreRefusedInALine(String argument, String sample) throws Exception {
        readDamaged(argument, sample, DRAWN_FOR_LONG);
    }

    private static void readDamaged(String argument, String sample, int count) throws Exception {
        Path file = folder.resolve("damaged-" + sample);
        int number = 0;
        for (byte[] damaged : (Iterable<byte[]>) Damage.of(samples.bytes(sample), SEED, count)::iterator) {
            Files.write(file, damaged);
            String which = "number " + number++ + " of seed " + SEED;
            long began = System.nanoTime();
            long allocated = allocatedBytes();
            ProgramRun run;
            try {
                run = read(argument, file);
            } catch (Throwable e) { // An error is not the program's to report, but it shows which file did it.
                throw new AssertionError(which, e);
            }
            assertThat(allocatedBytes() - allocated).as(which).isLessThan(MAX_ALLOCATED_BYTES);
            assertThat(System.nanoTime() - began).as(which).isLessThan(TimeUnit.SECONDS.toNanos(MAX_SECONDS));
            check(run, READERS.get(argument), file, which);
        }
    }

    private static void check(ProgramRun run, Reader reader, Path file, String which) throws Exception {
        assertThat(run.exitCode()).as(which + ": " + run.err()).isIn(reader.exitCodes);
        if (run.exitCode() == 2) {
            assertThat(run.err().lines()).as(which).hasSize(1);
            assertThat(run.err()).as(which).contains(file.toString()).doesNotContain("Exception", "java.");
        }
        if (run.exitCode() == 0 && reader.line[0].equals("import")) {
            assertThat(TraceReader.read(folder.resolve("made"))).as(which).isNotNull();
        }
    }

    static ProgramRun read(String argument, Path file) {
        List<String> line = new ArrayList<>(List.of(READERS.get(argument).line));
        line.add(file.toString());
        if (OUTPUTS.contains(line.getFirst() + " --output")) {
            line.addAll(List.of("--output", file.resolveSibling("made").toString()));
        }
        return ProgramRun.inProcess(line.toArray(String[]::new));
    }

    private static long allocatedBytes() {
        return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean()).getCurrentThreadAllocatedBytes();
    }
}
