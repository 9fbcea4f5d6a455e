package io.cistern.observability.jmx;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryFigures;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.spi.TrimMode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.ObjIntConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Implements the bean for a device memory.
final class MemoryBean implements DeviceMemoryMXBean {
    private final DeviceMemory memory;

    MemoryBean(DeviceMemory memory) {
        this.memory = memory;
    }

    @Override
    public MemoryFigures getFigures() {
        return MemoryFigures.of(memory);
    }

    @Override
    public long getRequestedBytes() {
        return statistics().mapToLong(AllocatorStatistics::requestedBytes).sum();
    }

    @Override
    public long getReservedBytes() {
        return statistics()
                .mapToLong(device -> device.reservedBytes().orElse(0))
                .sum();
    }

    @Override
    public long getLiveBlocks() {
        return statistics().mapToLong(AllocatorStatistics::liveBlocks).sum();
    }

    private Stream<AllocatorStatistics> statistics() {
        return devices().mapToObj(memory::statistics);
    }

    private IntStream devices() {
        return IntStream.range(0, memory.environment().deviceCount());
    }

    @Override
    public String getDriver() {
        return memory.driver().description();
    }

    @Override
    public String memorySummary(int device) {
        return memory.memorySummary(device);
    }

    @Override
    public long trim(int device, long keepBytes, boolean wait) {
        return memory.trim(device, keepBytes, wait ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING)
                .returnedBytes();
    }

    @Override
    public void resetPeaks() {
        forEach(Allocator::resetPeaks);
    }

    @Override
    public void resetTotals() {
        forEach(Allocator::resetTotals);
    }

    @Override
    public void startHistory(int capacity, boolean stacks) {
        MemoryHistory.of(memory).start(new HistoryOptions(capacity, stacks));
    }

    @Override
    public void stopHistory() {
        MemoryHistory.of(memory).stop();
    }

    @Override
    public boolean isHistoryOn() {
        return MemoryHistory.of(memory).isOn();
    }

    @Override
    public void snapshot(String file) throws IOException {
        MemorySnapshot.take(memory).write(Path.of(file));
    }

    private void forEach(ObjIntConsumer<Allocator> action) {
        memory.allocators().forEach(allocator -> devices().forEach(device -> action.accept(allocator, device)));
    }
}
