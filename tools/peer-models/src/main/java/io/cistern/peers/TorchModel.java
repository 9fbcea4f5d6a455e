package io.cistern.peers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.MemoryStatistics;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/// PyTorch's caching allocator on all devices: see [TorchDevice].
final class TorchModel implements DeviceAllocator, MemoryStatistics {
    private final List<TorchDevice> devices;

    TorchModel(AllocatorContext context, boolean isExpandable) {
        CudaDriver driver = context.extension(CudaDriver.class).orElseThrow();
        devices = IntStream.range(0, context.devices().deviceCount())
                .mapToObj(device -> new TorchDevice(driver, context.streams(), context.events(), device, isExpandable))
                .toList();
    }

    /// It is there to compare with, not to run programs on.
    static Availability availability(DeviceEnvironment environment) {
        return environment.simulated()
                ? Availability.yes()
                : Availability.no("it models PyTorch's allocator, for replays on the simulated GPU only");
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return devices.get(device).allocate(byteSize, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        devices.get(device).free(address, stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(devices.get(device).reservedBytes());
    }

    @Override
    public OptionalLong reservedPeakBytes(int device) {
        return OptionalLong.of(devices.get(device).peakBytes());
    }

    @Override
    public void resetPeaks(int device) {
        devices.get(device).resetPeak();
    }

    @Override
    public List<SegmentMemory> segments(int device) {
        return devices.get(device).segments();
    }

    @Override
    public long trim(int device, long keepBytes) {
        return devices.get(device).release();
    }

    @Override
    public void close() {
        devices.forEach(each -> DeadContext.survive(each::release));
    }
}
