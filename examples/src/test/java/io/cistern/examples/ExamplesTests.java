package io.cistern.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Runs each example as its reader would: in a JVM of its own, with everything on the class path.
class ExamplesTests {
    private static final Path SOURCES = Path.of("src", "main");

    @Test
    void quickStartReadsBackWhatItWroteAndFreesToTheFirstAllocator() throws Exception {
        assertThat(run(QuickStart.class))
                .containsExactly(
                        "caching gave 1048576 bytes; 1048576 of them read 42",
                        "caching has 0 bytes in use, 1048576 at its peak; current is direct");
    }

    @Test
    void quickStartTakesTheAllocatorThatThePropertyNames() throws Exception {
        assertThat(run(QuickStart.class, "-Dcistern.allocator=async"))
                .contains("async gave 1048576 bytes; 1048576 of them read 42");
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
    void aPoolOfTwoFunctionsCallsThemForSegmentsAlone() throws Exception {
        assertThat(run(PoolOfTwoFunctions.class))
                .containsExactly("1000 allocations from 1 segment", "closed: 0 segments left");
    }

    @Test
    void thePluginIsFoundByItsNameAndMetered() throws Exception {
        assertThat(run(UseThirtyLinePlugin.class))
                .containsExactly("thirty-lines gave 2 blocks of 4000 bytes in all", "thirty-lines has 0 blocks left");
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
                .filteredOn(line -> line.contains("outside every scope while others are open: async in thread main"))
                .isNotEmpty();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void twoProcessesWorkOnTheSameMemory() throws Exception {
        assertThat(run(TwoProcesses.class))
                .containsExactly("importer: 1048576 bytes, the last is 42", "exporter: the last byte is 43 now");
    }

    @Test
    void aPoolIsOpenedToAnotherDeviceAndClosedAgain() throws Exception {
        assertThat(run(TwoDevices.class, "-Dcistern.simulated.devices=2"))
                .containsExactly(
                        "at first device 1 has NONE: refused",
                        "then it has READ_WRITE: it wrote",
                        "in the end it has NONE: refused");
    }

    @Test
    void aRecordedProgramIsReplayed() throws Exception {
        assertThat(run(RecordAndReplay.class))
                .startsWith("recorded 400 rows of 100 allocations")
                .anyMatch(line -> line.matches("recorded\\d* +caching .* 0"))
                .anyMatch(line -> line.matches("recorded\\d* +async .* 0"))
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
    void thePluginHasThirtyLinesAtMost() throws IOException {
        List<String> lines = Stream.of(
                        SOURCES.resolve("java/io/cistern/examples/ThirtyLinePlugin.java"),
                        SOURCES.resolve("resources/META-INF/services/io.cistern.spi.AllocatorProvider"))
                .flatMap(ExamplesTests::code)
                .toList();

        assertThat(lines).hasSizeBetween(1, 30);
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
        List<String> all = new ArrayList<>(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "--class-path",
                System.getProperty("java.class.path")));
        all.addAll(options);
        return new JavaProgram(example.getName(), all, arguments, variables).run();
    }
}
