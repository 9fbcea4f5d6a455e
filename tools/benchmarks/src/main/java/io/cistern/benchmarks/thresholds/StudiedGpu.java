package io.cistern.benchmarks.thresholds;

import io.cistern.DeviceMemory;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.CallCosts;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/// A simulated H200 on which programs run for a study: what its driver calls cost is what was measured, kernels
/// take as long as a program says, and nothing depends on the machine that simulates.
///
/// Each program has a device memory of its own, as each process would have: allocators of one device memory give back
/// what is idle for each other. Over virtual time, what all of them hold and use is added up; looking takes no time.
final class StudiedGpu implements AutoCloseable {
    static final int DEVICE = 0;

    /// Fills are the kernels here: a byte a microsecond.
    private static final double KERNEL_BYTES_PER_NANO = 1e-3;

    /// What a look of `adaptive` takes.
    private static final long DELAY_NANOS = 300;

    private static final long LONGEST_KERNEL_NANOS = 1_000_000_000;

    private final SimulatedGpu gpu;
    private final Catalog catalog;
    private final String spec;
    private final List<StudiedProgram> programs = new ArrayList<>();
    private final long kernelBlock;

    /// What the pools hold is missing from it: their allocators are not asked, since that may let some of it go.
    private final long freeAtFirst;

    private @Nullable SplittableRandom delays;
    private int callsADelay;
    private long lookedNanos;
    private final long begunNanos;
    private long heldBytes;
    private long usedBytes;
    private double heldByteNanos;
    private double usedByteNanos;
    private long heldPeakBytes;
    private long turnsLost;

    /// @param spec the allocator of each program
    /// @param capacityBytes the memory of the device
    StudiedGpu(String spec, long capacityBytes) {
        this(spec, capacityBytes, List.of());
    }

    /// @param free calls that take no time
    StudiedGpu(String spec, long capacityBytes, List<DriverCall> free) {
        this.spec = spec;
        CallCosts h200 = CallCosts.h200();
        Map<DriverCall, CallCosts.Cost> calls = new EnumMap<>(h200.calls());
        calls.remove(DriverCall.MEM_GET_INFO); // Looking takes no time.
        free.forEach(calls::remove);
        gpu = SimulatedGpu.builder()
                .devices(1)
                .capacityBytes(capacityBytes)
                .costs(new CallCosts(
                        calls,
                        KERNEL_BYTES_PER_NANO,
                        h200.copyBytesPerNano(),
                        h200.hostLinkBytesPerNano(),
                        h200.peerLinkBytesPerNano(),
                        h200.deviceLatencyNanos()))
                .build();
        List<AllocatorProvider> providers = ServiceLoader.load(AllocatorProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        catalog = Catalog.of(providers, List.of());
        kernelBlock = gpu.memory().allocate(DEVICE, (long) (LONGEST_KERNEL_NANOS * KERNEL_BYTES_PER_NANO));
        freeAtFirst = gpu.memory().freeBytes(DEVICE);
        lookedNanos = gpu.virtualNanos();
        begunNanos = lookedNanos;
    }

    /// Starts a program.
    StudiedProgram program() {
        StudiedProgram program = new StudiedProgram(
                this, DeviceMemory.builder(gpu).catalog(catalog).open(), spec);
        programs.add(program);
        return program;
    }

    SimulatedGpu gpu() {
        return gpu;
    }

    /// Gives a stream a kernel.
    void kernel(long nanos, long stream) {
        long byteSize = Math.max(1, (long) (Math.min(nanos, LONGEST_KERNEL_NANOS) * KERNEL_BYTES_PER_NANO));
        gpu.copies().fillBytes(DEVICE, kernelBlock, (byte) 0, byteSize, stream);
    }

    /// Has programs lose some time before one of so many calls.
    void delay(SplittableRandom drawn, int oneIn) {
        delays = drawn;
        callsADelay = oneIn;
    }

    /// Call before each allocation and each free.
    void called() {
        if (delays != null && delays.nextInt(callsADelay) == 0) {
            gpu.passTime(DELAY_NANOS);
        }
    }

    /// Adds up what was held and used since the last look: what that found, for the time since then.
    void look() {
        long now = gpu.virtualNanos();
        heldByteNanos += (double) heldBytes * (now - lookedNanos);
        usedByteNanos += (double) usedBytes * (now - lookedNanos);
        heldBytes = freeAtFirst - gpu.memory().freeBytes(DEVICE);
        usedBytes = programs.stream().mapToLong(StudiedProgram::usedBytes).sum();
        heldPeakBytes = Math.max(heldPeakBytes, heldBytes);
        lookedNanos = now;
    }

    /// What all pools held at the last look.
    long heldBytes() {
        return heldBytes;
    }

    /// Says that work was given up.
    void loseTurns(int count) {
        turnsLost += count;
    }

    /// What has been seen until now.
    Seen seen() {
        double nanos = gpu.virtualNanos() - begunNanos;
        long refused = programs.stream().mapToLong(StudiedProgram::refused).sum();
        return new Seen(nanos, heldByteNanos / nanos, usedByteNanos / nanos, heldPeakBytes, refused, turnsLost);
    }

    @Override
    public void close() {
        programs.forEach(StudiedProgram::close);
        gpu.close();
    }

    /// Over all programs.
    ///
    /// @param nanos virtual time
    /// @param heldBytes the pools' memory, averaged over time
    /// @param usedBytes what programs used, averaged over time
    /// @param heldPeakBytes the most that the pools held
    /// @param refused allocations that failed
    /// @param turnsLost work that was given up for that
    record Seen(double nanos, double heldBytes, double usedBytes, long heldPeakBytes, long refused, long turnsLost) {}
}
