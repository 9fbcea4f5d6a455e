package io.cistern.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.jvm.CCompiler;
import io.cistern.jvm.JavaProgram;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Runs each example as its reader would: in a JVM of its own, with everything on the class path.
class ExamplesTests {
    private static final Path SOURCES = Path.of("src", "main");

    /// A little less than a step of the watched training takes at least: a sleep may end early.
    private static final long STEP_NANOS = 4_000_000;

    @TempDir
    private Path folder;

    @Test
    void quickStartReadsBackWhatItWroteAndFreesToTheFirstAllocator() throws Exception {
        assertThat(run(QuickStart.class))
                .containsExactly(
                        "caching gave 1048576 bytes; 1048576 of them read 42",
                        "caching has 0 bytes in use, 1048576 at its peak; current is direct");
    }

    @Test
    void aWatchedTrainingTellsItsPeaksAndFunctions() throws Exception {
        List<String> lines = run(Map.of(), ObserveTraining.class, List.of(), List.of(folder.toString()));
        assertThat(lines)
                .as("between log lines of the snapshot")
                .containsSubsequence(
                        "Counts[bytes=98566144, blocks=34, peakBytes=108003328, peakBlocks=37]",
                        "function                              calls       blocks            bytes             peak",
                        "forward                                  30          120        314572800         10485760",
                        "logLoss                                  30           30         31457280          1048576",
                        "refused; see cistern-oom-PID-1.json");
        assertThat(Files.readString(folder.resolve("training.json"))).contains("logLoss(ObserveTraining.java:");
        assertThatTheLeakGrowsStepByStep(folder.resolve("training.json"));
        try (Stream<Path> files = Files.list(folder)) {
            assertThat(files).anyMatch(file -> file.getFileName().toString().matches("cistern-oom-\\d+-1.json"));
        }
    }

    /// The report names a leak that grows all the time, so no two steps may fall into one moment.
    private static void assertThatTheLeakGrowsStepByStep(Path snapshot) throws IOException {
        Map<String, Object> read = JSON.std.mapFrom(Files.readString(snapshot));
        List<?> frames = (List<?>) read.get("frames");
        List<Long> times = new ArrayList<>();
        for (Object event : (List<?>) ((Map<?, ?>) read.get("history")).get("events")) {
            if (((Map<?, ?>) event).get("frames") instanceof List<?> stack
                    && !stack.isEmpty()
                    && String.valueOf(frames.get(((Number) stack.getFirst()).intValue()))
                            .contains(".logLoss(")) {
                times.add(nanos(event));
            }
        }
        assertThat(times).hasSize(30);
        for (int i = 1; i < times.size(); i++) {
            assertThat(times.get(i) - times.get(i - 1)).isGreaterThanOrEqualTo(STEP_NANOS);
        }
    }

    private static long nanos(Object event) {
        return ((Number) ((Map<?, ?>) event).get("nanos")).longValue();
    }

    @Test
    void aProductOfMatricesNeedsAGpu() throws Exception {
        assertThat(run(MatrixProductWithJavaCpp.class)).containsExactly("no product: it needs a GPU");
    }

    @Test
    void oneHandleServesThreadsThatComeAndGo() throws Exception {
        assertThat(run(LibraryHandles.class))
                .containsExactly("a virtual thread leases handle 1", "handles: 1 for 1000 threads and 1 lease");
    }

    /// Here is no GPU, one device, and no library to load.
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        OnnxRuntimeSessions | 1 | no memory for ONNX Runtime here: .*onnxruntime_gpu.*
        VectorAddWithJCuda  | 1 | JCuda needs a GPU
        VectorAddByImports  | 1 | JCuda needs its native libraries and a driver
        TwoGpus             | 1 | only one GPU; to simulate a second one: -Dcistern.simulated.devices=2
        TwoDevices          | 1 | this needs two devices; to simulate a second one: -Dcistern.simulated.devices=2
        LoadSharedLibrary   | 2 | one argument: the path of the library .*liballoc.so.*
        ExportToC           | 2 | one argument: the path of the library .*libframework.so.*
        """)
    void anExampleThatCannotWorkSaysWhyAndFails(String example, int exitCode, String message) throws Exception {
        assertThat(program("io.cistern.examples." + example, Map.of(), List.of(), List.of())
                        .run(exitCode))
                .last()
                .asString()
                .matches(message);
    }

    @Test
    void quickStartTakesTheAllocatorThatThePropertyNames() throws Exception {
        assertThat(run(QuickStart.class, "-Dcistern.allocator=async"))
                .contains("async gave 1048576 bytes; 1048576 of them read 42");
    }

    @Test
    void thePrometheusEndpointServesTheMeters() throws Exception {
        assertThat(run(Map.of(), PrometheusEndpoint.class, List.of(), List.of("once")))
                .contains(
                        "cistern_memory_requested_bytes{allocator=\"caching\",device=\"0\",memory=\"1\",pool=\"none\"} 6.7108864E7",
                        "cistern_blocks_live{allocator=\"caching\",device=\"0\",memory=\"1\",pool=\"none\"} 1.0");
    }

    @Test
    void aScopedPoolServesItsRegionAndDrainsWithItsLastBlock() throws Exception {
        assertThat(run(ScopedPool.class))
                .containsExactly(
                        "in the scope: 2 blocks from the pool",
                        "after it: 1 from the pool, 1 from caching",
                        "closed, with 1 block alive",
                        "drained: true");
    }

    @Test
    void aSleepingModelLeavesTheGpuAndComesBackAsItWas() throws Exception {
        assertThat(run(SleepingModel.class))
                .containsExactly(
                        "awake: 64 MiB of weights, 32 MiB of cache",
                        "asleep: 0 MiB of weights, 0 MiB of cache",
                        "not used: pool 1 'weights' (caching) is asleep; wake it first",
                        "awake again: 64 MiB of weights, 32 MiB of cache",
                        "same address: true, same bytes: true");
    }

    @Test
    void aPoolOfTwoFunctionsCallsThemForSegmentsAlone() throws Exception {
        assertThat(run(PoolOfTwoFunctions.class))
                .containsExactly("1000 allocations from 1 segment", "closed: 0 segments left");
    }

    @Test
    void thePluginIsFoundByItsNameAndMetered() throws Exception {
        assertThat(run(UseShortestPlugin.class))
                .containsExactly("shortest gave 2 blocks of 4000 bytes in all", "shortest has 0 blocks left");
    }

    @Test
    void theAllocatorIsSwappedAtStartupByPropertyVariableOrLine() throws Exception {
        assertThat(run(SwapAtStartup.class)).containsExactly("1048576 bytes from caching");
        assertThat(run(SwapAtStartup.class, "-Dcistern.allocator=async")).containsExactly("1048576 bytes from async");
        assertThat(run(Map.of("CISTERN_ALLOCATOR", "direct"), SwapAtStartup.class, List.of(), List.of()))
                .containsExactly("1048576 bytes from direct");
        assertThat(run(Map.of(), SwapAtStartup.class, List.of("-Dcistern.allocator=async"), List.of("direct")))
                .containsExactly("1048576 bytes from direct");
    }

    @Test
    void aCarriedScopeServesTheWorkersOfAnExecutor() throws Exception {
        assertThat(run(CarryScopeToExecutor.class))
                .containsExactly(
                        "without carrier: 2 blocks from caching, 0 from async",
                        "with carrier: 2 blocks from caching, 2 from async");
    }

    @Test
    void thePropertyReportsTheWorkersToWhichTheScopeWasNotCarried() throws Exception {
        assertThat(run(CarryScopeToExecutor.class, "-Dcistern.scopes.report=true"))
                .filteredOn(line -> line.contains(
                        "outside any scope while other threads have scopes open: async in" + " thread main"))
                .isNotEmpty();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void twoProcessesWorkOnTheSameMemory() throws Exception {
        assertThat(run(Map.of("CISTERN_DRIVER", "simulated"), TwoProcesses.class, List.of(), List.of()))
                .containsExactly("importer: 1048576 bytes, the last is 42", "exporter: the last byte is 43 now");
    }

    @Test
    void aPoolIsOpenedToAnotherDeviceAndClosedAgain() throws Exception {
        assertThat(run(TwoDevices.class, "-Dcistern.simulated.devices=2"))
                .containsExactly(
                        "at first device 1 has NONE: refused",
                        "then it has READ_WRITE: it wrote",
                        "finally it has NONE: refused");
    }

    @Test
    void aRecordedProgramIsReplayed() throws Exception {
        assertThat(run(RecordAndReplay.class))
                .startsWith("recorded 402 rows of 100 allocations")
                .anyMatch(line -> line.matches("recorded\\d* \\(peak requested: .*"))
                .anyMatch(line -> line.matches(" +caching .* \\d+"))
                .anyMatch(line -> line.matches(" +async .* \\d+"))
                .noneMatch(line -> line.contains("failures"))
                .anyMatch(line -> line.endsWith("words found changed: 0."));
    }

    @Test
    void gradientsOfAllDevicesAreSummedInMemoryOfNccl() throws Exception {
        assertThat(run(SumGradients.class, "-Dcistern.simulated.devices=2"))
                .containsExactly(
                        "device 0 has the sum 3",
                        "device 1 has the sum 3",
                        "in the scope: 2 blocks from ncclMemAlloc",
                        "after it: 1 block from caching");
    }

    @Test
    void aDroppedJarServesByItsName() throws Exception {
        Path plugins = Files.createDirectories(folder.resolve("plugins"));
        Path source = Files.createDirectories(folder.resolve("source")).resolve("Dropped.java");
        Files.writeString(
                source,
                Files.readString(SOURCES.resolve("java/io/cistern/examples/ShortestPlugin.java"))
                        .replace("package io.cistern.examples", "package dropped")
                        .replace("ShortestPlugin", "Dropped")
                        .replace("shortest", "dropped"));
        Path classes = Files.createDirectories(folder.resolve("classes/META-INF/services"));
        Files.writeString(classes.resolve("io.cistern.spi.AllocatorProvider"), "dropped.Dropped");
        tool(
                "javac",
                "-proc:none",
                "-cp",
                System.getProperty("java.class.path"),
                "-d",
                folder + "/classes",
                source.toString());
        Path jar = plugins.resolve("dropped.jar");
        tool("jar", "--create", "--file", jar.toString(), "-C", folder + "/classes", ".");
        Files.setPosixFilePermissions(plugins, PosixFilePermissions.fromString("rwxr-xr-x")); // whatever the umask
        Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-r--r--"));

        assertThat(run(DropPlugin.class, "-Dcistern.plugins=" + plugins, "-Dcistern.allocator=dropped"))
                .containsExactly("found dropped", "dropped served 1 allocation");
    }

    private static void tool(String name, String... arguments) {
        assertThat(ToolProvider.findFirst(name).orElseThrow().run(System.out, System.err, arguments))
                .isZero();
    }

    @Test
    void aSharedLibraryServesAndFeedsAPool() throws Exception {
        Path library = compiler().library(folder.resolve("liballoc.so"), c("alloc.c"));

        assertThat(run(Map.of(), LoadSharedLibrary.class, List.of(), List.of(library.toString())))
                .containsExactly("library gave 2 blocks, 4000 bytes", "1000 allocations from 2097152 bytes of it");
    }

    @Test
    void cAllocatesThroughFunctionPointers() throws Exception {
        Path library = compiler().library(folder.resolve("libframework.so"), c("framework.c"));

        assertThat(run(Map.of(), ExportToC.class, List.of(), List.of(library.toString())))
                .containsExactly("C got 10 blocks from caching; the peak was 56320 bytes, 0 blocks are left");
    }

    @Test
    void aLibraryThatAllocatesByItselfIsAdmitted() throws Exception {
        Path library = compiler().library(folder.resolve("libindex.so"), c("index.c"));

        assertThat(run(Map.of(), AdmitLibrary.class, List.of(), List.of(library.toString())))
                .containsExactly("6 indexes; at most 16 MiB admitted at once, 0 left");
    }

    @Test
    void anApplicationIsPutTogetherByGuice() throws Exception {
        assertThat(run(GuiceApplication.class, "--sun-misc-unsafe-memory-access=allow"))
                .contains("1 block from caching, 1 from gradients");
    }

    /// A process of Python that starts Java in itself; a consumer and a producer in `ctypes` stand for other
    /// libraries.
    @Test
    void tensorsGoToPythonAndBack() throws Exception {
        Path python = Path.of("../tools/benchmarks/peers/dlpack_in_python.py");
        Path java = Path.of(System.getProperty("java.home"), "lib", "server", "libjvm.so");
        Assumptions.assumeTrue(hasPython(), "no python3 on the path");
        ProcessBuilder host = new ProcessBuilder(
                        "python3",
                        python.toString(),
                        java.toString(),
                        System.getProperty("java.class.path"),
                        "-Xmx256m",
                        "-XX:TieredStopAtLevel=1")
                .redirectErrorStream(true);
        host.environment().put("CISTERN_DRIVER", "simulated");
        host.environment().put("DLPACK_CHECKS", "fake");
        Process process = host.start();

        List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        assertThat(lines).filteredOn(line -> line.startsWith("ok    fake: ")).hasSize(13);
        assertThat(lines).last().isEqualTo("0 wrong");
        assertThat(process.waitFor()).isZero();
    }

    private static boolean hasPython() throws InterruptedException {
        try {
            return new ProcessBuilder("python3", "--version").start().waitFor() == 0;
        } catch (IOException absent) {
            return false;
        }
    }

    @Test
    void aTensorIsSharedAndTakenBack() throws Exception {
        assertThat(run(TensorsInPython.class))
                .containsExactly("shared: 4000 bytes", "the sum is 3000", "taken and closed: 0 bytes");
    }

    private static CCompiler compiler() {
        Assumptions.assumeTrue(CCompiler.find().isPresent(), "no C compiler on the path");
        return CCompiler.find().orElseThrow();
    }

    private static String c(String file) throws IOException {
        return Files.readString(SOURCES.resolve("c").resolve(file));
    }

    @Test
    void vectorsAreAddedWithoutAnotherLibraryInTwentyLines() throws Exception {
        assertThat(run(VectorAdd.class)).containsExactly("1 + 1 = 2.0, 1048576 times");
        List<String> body = code(SOURCES.resolve("java/io/cistern/examples/VectorAdd.java"))
                .dropWhile(line -> !line.contains("void main"))
                .toList();
        assertThat(body).hasSizeBetween(1, 20);
    }

    @Test
    void anArenaServesEachStepAndItsBuffersEndWithIt() throws Exception {
        assertThat(run(ArenaPerStep.class))
                .satisfiesExactly(
                        line -> assertThat(line).matches("100 steps in \\d+ MiB, \\d allocations"),
                        line -> assertThat(line)
                                .contains("can't be used: it belongs to generation 100 of DeviceArena")
                                .endsWith("generation 101]"));
    }

    @Test
    void copiesOfPinnedMemoryGoOnBesideEachOther() throws Exception {
        List<Double> millis = run(Map.of(), OverlapCopies.class, List.of(), List.of("6", "1")).stream()
                .map(line -> Double.valueOf(line.replaceAll(".*: ([0-9.]+) ms", "$1")))
                .toList();
        assertThat(millis).hasSize(3).isSortedAccordingTo(java.util.Comparator.reverseOrder());
        assertThat(millis.getLast()).isLessThan(0.8 * millis.getFirst());
    }

    @Test
    void aBufferIsCopiedToAnotherGpu() throws Exception {
        assertThat(run(TwoGpus.class, "-Dcistern.simulated.devices=2"))
                .containsExactly("1048576 bytes on device 1, the last is 42");
    }

    @Test
    void thePluginIsShort() throws IOException {
        List<String> lines = Stream.of(
                        SOURCES.resolve("java/io/cistern/examples/ShortestPlugin.java"),
                        SOURCES.resolve("resources/META-INF/services/io.cistern.spi.AllocatorProvider"))
                .flatMap(ExamplesTests::code)
                .toList();

        assertThat(lines).hasSizeBetween(1, 55);
    }

    /// The lines of a file without imports, comments and blank ones.
    private static Stream<String> code(Path file) {
        try {
            return Files.readAllLines(file).stream()
                    .map(String::strip)
                    .filter(line -> !line.isEmpty() && !line.startsWith("//") && !line.startsWith("import "));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private List<String> run(Class<?> example, String... options) throws IOException, InterruptedException {
        return run(Map.of(), example, List.of(options), List.of());
    }

    private List<String> run(
            Map<String, String> variables, Class<?> example, List<String> options, List<String> arguments)
            throws IOException, InterruptedException {
        return program(example.getName(), variables, options, arguments).run();
    }

    private static JavaProgram program(
            String example, Map<String, String> variables, List<String> options, List<String> arguments) {
        List<String> all = new ArrayList<>(List.of("--enable-native-access=ALL-UNNAMED", "-XX:TieredStopAtLevel=1"));
        all.addAll(options);
        // Not as an option: ONNX Runtime crashes in a process with a long command line.
        Map<String, String> environment = new HashMap<>(variables);
        environment.put("CLASSPATH", System.getProperty("java.class.path"));
        return new JavaProgram(example, all, arguments, environment);
    }
}
