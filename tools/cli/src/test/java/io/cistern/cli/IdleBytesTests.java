package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cli.common.Plugins;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.OutOfMemoryReport.AllocatorMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The idle bytes of a report can be given back: they are not in use above the allocator that has them.
final class IdleBytesTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY_BYTES = 256 * MIB;

    static List<String> specs() {
        List<String> specs = new ArrayList<>(EverySpec.list());
        specs.removeIf(spec -> spec.contains("managed") || spec.contains("location=host"));
        return specs;
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void ofAnAllocatorUnderAPool(String spec) {
        try (SimulatedGpu gpu =
                        SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
                Allocator under = memory.open(spec);
                MemoryPool pool = MemoryPool.builder(memory).upstream(under).open()) {
            List<Long> live = new ArrayList<>();
            OutOfMemoryReport report = null;
            while (report == null) {
                try {
                    live.add(pool.allocate(20 * MIB, 0, 0));
                } catch (DeviceOutOfMemoryException refused) {
                    report = refused.report().orElseThrow();
                }
            }
            long idle = report.allocators().stream()
                    .mapToLong(AllocatorMemory::idleBytes)
                    .sum();
            assertThat(live).isNotEmpty();
            assertThat(idle + report.freeBytes().orElseThrow() + live.size() * 20 * MIB)
                    .as(report.text())
                    .isLessThanOrEqualTo(CAPACITY_BYTES);
            live.forEach(block -> memory.free(block, 0));
        }
    }
}
