package io.cistern.cli.faults;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/// Each driver call that a [program][FaultyProgram] has Cistern make, and each way in which it fails: nothing hangs,
/// each exception has a type of Cistern's, no block is lost, and closing succeeds. Memory can be used
/// afterwards, unless its context is lost.
///
/// The table of what programs get goes to `target/fault-table.md`, and its summary stands in `docs/reliability.md`.
/// With
/// `-Dcistern.docs.write=true` the summary is written.
final class FaultTableTests {
    private static final List<String> SPECS = List.of("caching", "caching:source=linear", "async", "direct");
    private static final Path PAGE = Path.of("..", "..", "docs", "reliability.md");
    private static final Path TABLE = Path.of("target", "fault-table.md");
    private static final String BEGIN = "<!-- faults: made by FaultTableTests -->\n";
    private static final String END = "<!-- end of faults -->";
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int ALWAYS = Integer.MAX_VALUE;

    private static final ExecutorService THREADS = Executors.newCachedThreadPool(
            Thread.ofPlatform().daemon().name("faulty-", 0).factory());

    /// How a call fails.
    private enum Fault {
        ONCE("fails once"),
        LATER("fails once, half way"),
        ALWAYS_FAILS("always fails"),
        SLOW("takes a second"),
        CONTEXT_LOST("loses the context"),
        DEVICE_LOST("loses the device");

        final String title;

        Fault(String title) {
            this.title = title;
        }

        boolean isLoss() {
            return this == CONTEXT_LOST || this == DEVICE_LOST;
        }

        void ask(FaultyProgram program, DriverCall call, int calls) {
            var faults = program.gpu.faults();
            switch (this) {
                case ONCE -> faults.failOn(call, 0, 1, CudaResult.UNKNOWN);
                case LATER -> faults.failOn(call, calls / 2, 1, CudaResult.UNKNOWN);
                case ALWAYS_FAILS -> faults.failOn(call, 0, ALWAYS, CudaResult.UNKNOWN);
                case SLOW -> {}
                case CONTEXT_LOST -> faults.loseContextOn(call, calls / 2, CudaResult.ILLEGAL_ADDRESS);
                case DEVICE_LOST -> {
                    faults.loseContextOn(call, calls / 2, CudaResult.ECC_UNCORRECTABLE);
                    program.afterFailure = () -> EnumSet.allOf(DriverCall.class)
                            .forEach(each -> faults.failOn(0, each, 0, ALWAYS, CudaResult.ECC_UNCORRECTABLE));
                }
            }
        }
    }

    /// What the program gets, in the order of the table's words.
    private enum Outcome {
        SERVED,
        REFUSED,
        ERROR
    }

    private final Map<DriverCall, Map<Fault, Set<Outcome>>> table = new TreeMap<>();
    private final List<String> wrong = new ArrayList<>();

    @AfterAll
    static void end() {
        THREADS.shutdownNow();
    }

    @Test
    void everyFaultOfEveryCallIsSurvived() throws Exception {
        for (String spec : SPECS) {
            FaultyProgram sound = inTime(() -> sound(spec));
            calls(sound).forEach((call, calls) -> {
                for (Fault fault : Fault.values()) {
                    cell(spec, call, calls, fault, sound.refusals());
                }
            });
        }
        Files.createDirectories(TABLE.getParent());
        Files.writeString(TABLE, whole());
        assertThat(wrong).isEmpty();
        assertThat(table).hasSizeGreaterThan(40);
        String page = Files.readString(PAGE);
        String current =
                page.substring(0, page.indexOf(BEGIN) + BEGIN.length()) + summary() + page.substring(page.indexOf(END));
        if (Boolean.getBoolean("cistern.docs.write")) {
            Files.writeString(PAGE, current);
        }
        assertThat(PAGE).hasContent(current);
    }

    private static FaultyProgram sound(String spec) throws InterruptedException {
        try (FaultyProgram program = new FaultyProgram(spec, null)) {
            program.run();
            assertThat(program.untyped()).isEmpty();
            assertThat(program.useAgain()).isEmpty();
            assertThat(program.end(false)).as(spec).isEmpty();
            return program;
        }
    }

    /// How often each call is made, by the program too.
    private static Map<DriverCall, Integer> calls(FaultyProgram program) {
        Map<DriverCall, Integer> calls = new EnumMap<>(DriverCall.class);
        for (DriverCall call : DriverCall.values()) {
            int count = (int) program.gpu.calls().of(call);
            if (count > 0) {
                calls.put(call, count);
            }
        }
        return calls;
    }

    private void cell(String spec, DriverCall call, int calls, Fault fault, Map<String, Integer> usual) {
        String name = spec + ", " + call.symbol() + " " + fault.title + ": ";
        try {
            Set<Outcome> got = inTime(() -> run(spec, call, calls, fault, usual, name));
            table.computeIfAbsent(call, _ -> new EnumMap<>(Fault.class))
                    .computeIfAbsent(fault, _ -> EnumSet.noneOf(Outcome.class))
                    .addAll(got);
        } catch (Exception failure) {
            wrong.add(name + failure);
        }
    }

    private Set<Outcome> run(
            String spec, DriverCall call, int calls, Fault fault, Map<String, Integer> usual, String name)
            throws InterruptedException {
        try (FaultyProgram program = new FaultyProgram(spec, fault == Fault.SLOW ? call : null)) {
            fault.ask(program, call, calls);
            program.run();
            program.untyped().forEach(each -> wrong.add(name + each + at(each)));
            if (fault.isLoss()) {
                program.end(true).forEach(each -> wrong.add(name + each));
            } else {
                program.useAgain().forEach(each -> wrong.add(name + each));
                program.end(false).stream()
                        .filter(each -> !staysWithTheDriver(call, fault, each))
                        .forEach(each -> wrong.add(name + each));
            }
            return outcomes(program.refusals(), usual);
        }
    }

    /// What the driver refuses to take back while a pool or a graph ends stays with it, since nobody asks again.
    private static boolean staysWithTheDriver(DriverCall call, Fault fault, String what) {
        return switch (call) {
            case MEM_FREE, MEM_UNMAP, MEM_RELEASE -> fault == Fault.ALWAYS_FAILS && what.endsWith("bytes are lost");
            default -> false;
        };
    }

    private static String at(Throwable failure) {
        return Stream.of(failure.getStackTrace())
                .limit(6)
                .map(frame -> "\n    at " + frame)
                .collect(Collectors.joining());
    }

    private static Set<Outcome> outcomes(Map<String, Integer> refusals, Map<String, Integer> usual) {
        Set<Outcome> got = EnumSet.noneOf(Outcome.class);
        refusals.forEach((type, times) -> {
            if (times > usual.getOrDefault(type, 0)) {
                got.add(type.equals("DeviceOutOfMemoryException") ? Outcome.REFUSED : Outcome.ERROR);
            }
        });
        return got.isEmpty() ? EnumSet.of(Outcome.SERVED) : got;
    }

    private static <T> T inTime(Callable<T> work) throws InterruptedException, ExecutionException, TimeoutException {
        return THREADS.submit(work).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    private static String head(String first) {
        return "| " + first + " | "
                + Stream.of(Fault.values()).map(fault -> fault.title).collect(Collectors.joining(" | ")) + " |\n"
                + "|---".repeat(Fault.values().length + 1) + "|\n";
    }

    private String whole() {
        return head("call")
                + table.keySet().stream()
                        .map(call -> "| `" + call.symbol() + "` | " + cells(call) + " |\n")
                        .collect(Collectors.joining());
    }

    /// Calls with the same outcomes share a row.
    private String summary() {
        Map<String, List<DriverCall>> byCells = new LinkedHashMap<>();
        table.keySet()
                .forEach(call -> byCells.computeIfAbsent(cells(call), _ -> new ArrayList<>())
                        .add(call));
        return head("calls")
                + byCells.entrySet().stream()
                        .map(row -> "| "
                                + row.getValue().stream()
                                        .map(call -> "`" + call.symbol() + "`")
                                        .collect(Collectors.joining(", "))
                                + " | " + row.getKey() + " |\n")
                        .collect(Collectors.joining());
    }

    private String cells(DriverCall call) {
        Map<Fault, Set<Outcome>> row = table.getOrDefault(call, Map.of());
        return Stream.of(Fault.values())
                .map(fault -> row.getOrDefault(fault, Set.of()).stream()
                        .map(outcome -> outcome.name().toLowerCase(Locale.ROOT))
                        .collect(Collectors.joining(", ")))
                .collect(Collectors.joining(" | "));
    }
}
