package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.observability.MemoryFigures;
import io.cistern.observability.MemoryPeaks;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.jmx.DeviceMemoryMXBean;
import io.cistern.observability.jmx.MemoryBeans;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.MemoryStatistics;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.management.JMX;
import javax.management.ObjectName;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// No figure, report or reset throws once the context or the device is lost, whichever allocator is asked;
/// and all that is open can be closed.
final class LostDeviceReportsTests {
    private static final long MIB = 1 << 20;

    private enum Loss {
        CONTEXT(CudaResult.ILLEGAL_ADDRESS),
        DEVICE(CudaResult.ECC_UNCORRECTABLE);

        private final CudaResult result;

        Loss(CudaResult result) {
            this.result = result;
        }

        void happenTo(SimulatedGpu gpu) {
            gpu.faults().loseContextOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, result);
            assertThatThrownBy(() -> gpu.devices().synchronize(0)).isInstanceOf(CudaException.class);
            if (this == DEVICE) {
                EnumSet.allOf(DriverCall.class)
                        .forEach(call -> gpu.faults().failOn(0, call, 0, Integer.MAX_VALUE, result));
            }
        }
    }

    static Stream<Arguments> losses() {
        return EverySpec.list().stream()
                .flatMap(spec -> Stream.of(Loss.values()).map(loss -> Arguments.of(spec, loss)));
    }

    @ParameterizedTest
    @MethodSource("losses")
    void everyReportOutlivesTheDevice(String spec, Loss loss) throws Exception {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(256 * MIB).build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Plugins.catalog())
                        .leakLevel(LeakLevel.ALL)
                        .open();
                MemoryPeaks peaks = MemoryPeaks.open(memory, 0);
                Registration _ = MemoryBeans.register(memory, "lost");
                Allocator allocator = memory.setCurrent(spec);
                MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
                Allocator _ = memory.open(spec);
                CudaStream one = CudaStream.open(memory, 0);
                CudaStream other = CudaStream.open(memory, 0);
                PinnedBuffer _ = PinnedMemory.of(memory).allocate(MIB);
                CudaGraph _ = graph(memory, one.handle())) {
            long used = allocator.allocate(MIB, 0, one.handle());
            memory.recordUse(used, other.handle());
            memory.free(allocator.allocate(40 * MIB, 0, other.handle()), other.handle());
            long ofPool = pool.allocate(3 * MIB, 0, other.handle());

            loss.happenTo(gpu);

            Map<String, ThrowingCallable> reports = new LinkedHashMap<>(reportsOf(memory, used, ofPool));
            reports.put("MemoryPeaks.counts", peaks::counts);
            reports.put("MemoryPeaks.reset", peaks::reset);
            Map<String, Throwable> thrown = new TreeMap<>();
            reports.forEach((name, report) -> {
                try {
                    report.call();
                } catch (Throwable failure) {
                    thrown.put(name, failure);
                }
            });
            memory.free(used, one.handle());
            memory.free(ofPool, one.handle());
            assertThat(thrown).isEmpty();
        }
    }

    private static CudaGraph graph(DeviceMemory memory, long stream) {
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.RELAXED)) {
            memory.free(memory.allocate(MIB, 0, stream), stream);
            return capture.endAndInstantiate();
        }
    }

    private static Map<String, ThrowingCallable> reportsOf(DeviceMemory memory, long used, long ofPool)
            throws Exception {
        Map<String, ThrowingCallable> reports = new LinkedHashMap<>();
        reports.put("DeviceMemory.statistics", () -> memory.statistics(0));
        reports.put("DeviceMemory.memorySummary", () -> memory.memorySummary(0));
        reports.put("DeviceMemory.liveBlocks", memory::liveBlocks);
        reports.put("DeviceMemory.ownerOf", () -> memory.ownerOf(ofPool));
        reports.put("DeviceMemory.toString", memory::toString);
        reports.put("DeviceMemory.limits", () -> memory.limits().device(0).byteSize());
        for (Allocator allocator : memory.allocators()) {
            reports.putAll(reportsOf(allocator, used));
        }
        reports.put("GraphMemory.kept", () -> GraphMemory.kept(memory).toString());
        reports.put("PinnedMemory.statistics", () -> PinnedMemory.of(memory).statistics());
        reports.put("PinnedMemory.resetPeaks", () -> PinnedMemory.of(memory).resetPeaks());
        reports.put("PinnedMemory.resetTotals", () -> PinnedMemory.of(memory).resetTotals());
        reports.put("MemoryFigures", () -> MemoryFigures.of(memory));
        reports.put("MemorySnapshot", () -> MemorySnapshot.take(memory).writeJson(OutputStream.nullOutputStream()));
        DeviceMemoryMXBean bean = JMX.newMXBeanProxy(
                ManagementFactory.getPlatformMBeanServer(),
                new ObjectName(MemoryBeans.PATTERN.replace("*", "lost")),
                DeviceMemoryMXBean.class);
        reports.put("bean's figures", bean::getFigures);
        reports.put("bean's requested bytes", bean::getRequestedBytes);
        reports.put("bean's reserved bytes", bean::getReservedBytes);
        reports.put("bean's live blocks", bean::getLiveBlocks);
        reports.put("bean's driver", bean::getDriver);
        reports.put("bean's summary", () -> bean.memorySummary(0));
        reports.put("bean's reset of peaks", bean::resetPeaks);
        reports.put("bean's reset of totals", bean::resetTotals);
        return reports;
    }

    private static Map<String, ThrowingCallable> reportsOf(Allocator allocator, long address) {
        Map<String, ThrowingCallable> reports = new LinkedHashMap<>();
        String name = allocator + ".";
        reports.put(name + "statistics", () -> allocator.statistics(0));
        reports.put(name + "memoryStatistics", () -> allocator.memoryStatistics(0));
        reports.put(name + "memorySummary", () -> allocator.memorySummary(0));
        reports.put(name + "reservedBytes", () -> allocator.reservedBytes(0));
        reports.put(name + "segments", () -> allocator.segments(0));
        reports.put(name + "liveBlocks", allocator::liveBlocks);
        reports.put(name + "limit", () -> allocator.limit().byteSize());
        reports.put(name + "resetPeaks", () -> allocator.resetPeaks(0));
        reports.put(name + "resetTotals", () -> allocator.resetTotals(0));
        for (MemoryStatistics own :
                allocator.extension(MemoryStatistics.class).stream().toList()) {
            reports.put(name + "own.statistics", () -> own.statistics(0));
            reports.put(name + "own.reservedPeakBytes", () -> own.reservedPeakBytes(0));
            reports.put(name + "own.heldByStream", () -> own.heldByStream(0));
            reports.put(name + "own.segments", () -> own.segments(0));
            reports.put(name + "own.unusable", () -> own.unusable(0));
            reports.put(name + "own.history", () -> own.history(address));
            reports.put(name + "own.resetPeaks", () -> own.resetPeaks(0));
            reports.put(name + "own.resetTotals", () -> own.resetTotals(0));
        }
        return reports;
    }
}
