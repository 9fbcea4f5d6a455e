package io.cistern.examples.spark.queries;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.examples.spark.engine.HostKernels;
import io.cistern.examples.spark.engine.Operators;
import io.cistern.jvm.CCompiler;
import io.cistern.testkit.TestMemory;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The queries have DuckDB's results, whatever allocator serves them, from several threads, and where
/// memory is short.
final class QueryTests {
    private static final double SCALE = 0.002;
    private static final long CAPACITY = 1L << 30;

    private static Map<Query, List<String>> expected;

    @TempDir
    private Path folder;

    @BeforeAll
    static void ask() throws SQLException {
        expected = DuckDbResults.of(SCALE);
        assertThat(expected.values()).noneMatch(List::isEmpty);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "direct",
                "async:release_threshold=zero",
                "async:release_threshold=keep_all",
                "async:release_threshold=adaptive",
                "caching"
            })
    void resultsAreThoseOfDuckDb(String spec) {
        try (DeviceMemory memory = TestMemory.open(spec, CAPACITY)) {
            assertThat(results(memory)).isEqualTo(expected);
            assertThat(TestMemory.gpu(memory).misuses()).isEmpty();
            assertThat(memory.liveBlocks()).isEmpty();
        }
    }

    @Test
    void theKernelsOfRealDevicesHaveTheseResults() throws IOException, InterruptedException {
        Optional<CCompiler> compiler = CCompiler.findForCpp();
        assumeTrue(compiler.isPresent(), "no C++ compiler");
        try (DeviceMemory memory = TestMemory.open("caching", CAPACITY)) {
            HostKernels.register(TestMemory.gpu(memory), compiler.get(), folder);
            assertThat(results(memory)).isEqualTo(expected);
            assertThat(ordersAndRevenue(memory, Slice.ALL.halves()))
                    .isEqualTo(ordersAndRevenue(memory, List.of(Slice.ALL)));
        }
    }

    /// The sums of a plan with texts and of one with numbers only.
    private static List<Long> ordersAndRevenue(DeviceMemory memory, List<Slice> slices) {
        long orders = 0;
        long revenue = 0;
        try (CudaStream stream = CudaStream.open(memory, 0);
                Operators operators = new Operators(stream, 0, null)) {
            for (Slice slice : slices) {
                Plans plans = new Plans(operators, new Tables(operators, SCALE, Expected.SEED, slice));
                orders += plans.ordersOfCustomers()
                        .mapToLong(row -> (long) row[1])
                        .sum();
                revenue +=
                        plans.forecastRevenue().mapToLong(row -> (long) row[0]).sum();
            }
        }
        return List.of(orders, revenue);
    }

    private static Map<Query, List<String>> results(DeviceMemory memory) {
        try (CudaStream stream = CudaStream.open(memory, 0);
                Operators operators = new Operators(stream, 0, null)) {
            Tables tables = new Tables(operators, SCALE, Expected.SEED, Slice.ALL);
            return Arrays.stream(Query.values())
                    .collect(Collectors.toMap(Function.identity(), query -> query.run(operators, tables)));
        }
    }

    @Test
    void keptResultsAreThoseOfDuckDb() throws IOException, SQLException {
        assertThat(Expected.read(0.01)).isEqualTo(DuckDbResults.of(0.01));
        assertThat(Expected.read(0.123)).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"one", "eight", "short"})
    void theProgramMeasuresEachQueryAndChecksIt(String mode) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try (DeviceMemory memory = TestMemory.open("direct", CAPACITY)) {
            assertThat(Queries.run(memory, "0.01", "1", mode, "direct", "caching"))
                    .isTrue();
            assertThat(memory.liveBlocks()).isEmpty();
        } finally {
            System.setOut(before);
        }
        List<String> lines = printed.toString(StandardCharsets.UTF_8).lines().toList();
        assertThat(lines.stream().anyMatch(line -> line.matches(".*\"spilledBytes\": [1-9].*")))
                .isEqualTo(mode.equals("short"));
        assertThat(lines.stream().filter(line -> line.contains("\"query\"")))
                .hasSize(2 * (Query.values().length + 1))
                .allMatch(line -> line.contains("\"right\": true, \"checkedWith\": \"DuckDB\""));
    }
}
