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

/// A simulated H200 for a study: driver calls have costs measured on hardware, kernels take as long as a
/// program says, and nothing depends on the simulating machine.
///
/// Each program has its own device memory, as if it were a process, because allocators of one device memory
/// give back idle memory for each other. The study integrates the held and used bytes of all programs over
/// virtual time; looking at them takes no time.
final class StudiedGpu implements AutoCloseable {
    static final int DEVICE = 0;

    /// Fills serve as kernels: a byte a microsecond.
    private static final double KERNEL_BYTES_PER_NANO = 1e-3;

    /// The time of a look of `adaptive`.
    private static final long DELAY_NANOS = 300;

    private static final long LONGEST_KERNEL_NANOS = 1_000_000_000;

    private final SimulatedGpu gpu;
    private final Catalog catalog;
    private final String spec;
    private final List<StudiedProgram> programs = new ArrayList<>();
    private final long kernelBlock;

    /// Free bytes before any program runs. The pools' memory is measured as the difference, because asking
    /// their allocators may release some of it.
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

    /// @param free driver calls that take no time
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

    /// Enqueues a kernel on a stream.
    void kernel(long nanos, long stream) {
        long byteSize = Math.max(1, (long) (Math.min(nanos, LONGEST_KERNEL_NANOS) * KERNEL_BYTES_PER_NANO));
        gpu.copies().fillBytes(DEVICE, kernelBlock, (byte) 0, byteSize, stream);
    }

    /// Makes programs lose some time before one random call in so many.
    void delay(SplittableRandom drawn, int oneIn) {
        delays = drawn;
        callsADelay = oneIn;
    }

    /// Called before each allocation and each free.
    void called() {
        if (delays != null && delays.nextInt(callsADelay) == 0) {
            gpu.passTime(DELAY_NANOS);
        }
    }

    /// Adds the held and used bytes of the previous look for the time since then, and reads them anew.
    void look() {
        long now = gpu.virtualNanos();
        heldByteNanos += (double) heldBytes * (now - lookedNanos);
        usedByteNanos += (double) usedBytes * (now - lookedNanos);
        heldBytes = freeAtFirst - gpu.memory().freeBytes(DEVICE);
        usedBytes = programs.stream().mapToLong(StudiedProgram::usedBytes).sum();
        heldPeakBytes = Math.max(heldPeakBytes, heldBytes);
        lookedNanos = now;
    }

    /// Returns the bytes that all pools held at the last look.
    long heldBytes() {
        return heldBytes;
    }

    /// Counts work that was given up.
    void loseTurns(int count) {
        turnsLost += count;
    }

    /// Returns the results so far.
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

    /// The results over all programs.
    ///
    /// @param nanos virtual time
    /// @param heldBytes the pools' memory, averaged over time
    /// @param usedBytes the programs' used memory, averaged over time
    /// @param heldPeakBytes the most bytes that the pools held
    /// @param refused allocations that failed
    /// @param turnsLost turns that programs gave up because of that
    record Seen(double nanos, double heldBytes, double usedBytes, long heldPeakBytes, long refused, long turnsLost) {}
}
