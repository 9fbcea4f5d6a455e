package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.ManagedMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Locale;
import java.util.function.Consumer;

/// Measures managed memory beside device memory and copies of pinned memory, for a job that goes over its data
/// several times. Plain memory takes all of the GPU's free memory but a limit; the working set is 0.5, 0.9, 1.1
/// and 1.5 of that limit.
///
/// The data begin on the host. `move` brings them to the device, if the way has such a step; `read` is a kernel
/// that reads all of them; `write` is a fill of all of them. The kernel checks the contents: a difference ends
/// the program with an error.
///
/// | way | |
/// |---|---|
/// | `device` | plain memory, copied there once; left out if the data do not fit |
/// | `copies` | plain memory of a quarter of the limit; passes copy the data through it, back if they write |
/// | `touch` | managed memory, moved by the page faults of the kernel |
/// | `prefetch` | managed memory, prefetched before each pass |
/// | `prefer_device` | managed memory that prefers the device |
/// | `prefer_host` | managed memory that prefers the host and is mapped on the device: nothing moves |
///
/// Arguments: the limit in MiB (512), passes (3), `managed` or another spec of managed memory
/// (`managed`). Prints CSV. Times are the driver's, so they are virtual on a simulated GPU, which charges
/// nothing for page faults.
public final class ManagedCosts {
    private static final MemoryLocation GPU = MemoryLocation.device(0);
    private static final double[] SHARES = {0.5, 0.9, 1.1, 1.5};
    private static final long MIB = 1 << 20;
    private static final int WORD = 0x01010101;

    private final OpenMemory open = new OpenMemory("direct");
    private final DeviceMemory memory = open.memory();
    private final CudaDriver driver = open.driver();
    private final long stream = open.newStream();
    private final MemoryKernels kernels = MemoryKernels.load(driver, 0);
    private final MemorySegment mismatches = driver.memory().allocateHost(0, Long.BYTES);
    private final Deque<Long> held = new ArrayDeque<>();
    private final long limit;
    private final int passes;
    private final String spec;

    private ManagedCosts(long limit, int passes, String spec) {
        this.limit = limit;
        this.passes = passes;
        this.spec = spec;
    }

    /// Measures and prints.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        long mib = arguments.length > 0 ? Long.parseLong(arguments[0]) : 512;
        int passes = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 3;
        ManagedCosts costs = new ManagedCosts(mib * MIB, passes, arguments.length > 2 ? arguments[2] : "managed");
        costs.run();
        costs.kernels.close();
        costs.driver.memory().freeHost(0, costs.mismatches);
        costs.open.close();
    }

    private void run() {
        var supported = driver.capabilities().devices().getFirst().supports(DriverFeature.MANAGED_MEMORY);
        if (!supported.supported()) {
            System.out.println("no managed memory: " + supported.reason());
            return;
        }
        System.out.println("way,share,bytes,step,pass,millis,gigabytes_per_second");
        hold();
        for (double share : SHARES) {
            long byteSize = (long) (share * limit) / (2 * MIB) * (2 * MIB);
            if (share < 1) {
                onDevice(share, byteSize);
            }
            byCopies(share, byteSize);
            managed("touch", share, byteSize, _ -> {}, _ -> {});
            managed("prefetch", share, byteSize, _ -> {}, this::prefetch);
            if (spec.equals("managed")) { // A pool of another spec takes no advice.
                managed("prefer_device", share, byteSize, buffer -> advise(buffer, GPU), _ -> {});
                managed("prefer_host", share, byteSize, buffer -> advise(buffer, MemoryLocation.host()), _ -> {});
            }
        }
        held.forEach(address -> driver.memory().free(0, address));
    }

    /// Allocates all of the device except the limit, in large pieces and then in small ones.
    private void hold() {
        for (long piece = 1024 * MIB; piece >= 2 * MIB; piece /= 2) {
            while (driver.memory().freeBytes(0) - limit >= piece) {
                held.push(driver.memory().allocate(0, piece));
            }
        }
    }

    private void prefetch(DeviceBuffer buffer) {
        ManagedMemory.prefetch(buffer, GPU, stream);
    }

    private static void advise(DeviceBuffer buffer, MemoryLocation preferred) {
        ManagedMemory.advise(buffer, MemoryAdvice.SET_PREFERRED_LOCATION, preferred);
        ManagedMemory.advise(buffer, MemoryAdvice.SET_ACCESSED_BY, GPU);
    }

    private void onDevice(double share, long byteSize) {
        MemorySegment host = pinned(byteSize);
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, byteSize, 0, stream)) {
            measure("device", share, byteSize, "move", 1, () -> toDevice(buffer.address(), host, 0, byteSize));
            for (int pass = 1; pass <= passes; pass++) {
                measure("device", share, byteSize, "read", pass, () -> read(buffer.address(), byteSize));
            }
            for (int pass = 1; pass <= passes; pass++) {
                measure("device", share, byteSize, "write", pass, () -> write(buffer.address(), byteSize));
            }
        } finally {
            driver.memory().freeHost(0, host);
        }
    }

    private void byCopies(double share, long byteSize) {
        MemorySegment host = pinned(byteSize);
        long piece = limit / 4;
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, piece, 0, stream)) {
            for (int pass = 1; pass <= passes; pass++) {
                measure(
                        "copies",
                        share,
                        byteSize,
                        "read",
                        pass,
                        () -> inPieces(byteSize, piece, (at, size) -> {
                            toDevice(buffer.address(), host, at, size);
                            read(buffer.address(), size);
                        }));
            }
            for (int pass = 1; pass <= passes; pass++) {
                measure(
                        "copies",
                        share,
                        byteSize,
                        "write",
                        pass,
                        () -> inPieces(byteSize, piece, (at, size) -> {
                            toDevice(buffer.address(), host, at, size);
                            write(buffer.address(), size);
                            driver.copies().toHost(0, host.asSlice(at, size), buffer.address(), size, stream);
                        }));
            }
        } finally {
            driver.memory().freeHost(0, host);
        }
    }

    private interface Piece {
        void at(long offset, long byteSize);
    }

    private static void inPieces(long byteSize, long piece, Piece action) {
        for (long at = 0; at < byteSize; at += piece) {
            action.at(at, Math.min(piece, byteSize - at));
        }
    }

    private void managed(
            String way, double share, long byteSize, Consumer<DeviceBuffer> advice, Consumer<DeviceBuffer> before) {
        try (MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
                DeviceBuffer buffer = DeviceBuffer.allocate(pool, byteSize, 0, stream)) {
            advice.accept(buffer);
            buffer.hostView().fill((byte) WORD);
            for (int pass = 1; pass <= passes; pass++) {
                measure(way, share, byteSize, "read", pass, () -> {
                    before.accept(buffer);
                    read(buffer.address(), byteSize);
                });
            }
            for (int pass = 1; pass <= passes; pass++) {
                measure(way, share, byteSize, "write", pass, () -> {
                    before.accept(buffer);
                    write(buffer.address(), byteSize);
                });
            }
        }
    }

    private MemorySegment pinned(long byteSize) {
        return driver.memory().allocateHost(0, byteSize).fill((byte) WORD);
    }

    private void toDevice(long target, MemorySegment host, long offset, long byteSize) {
        driver.copies().toDevice(0, target, host.asSlice(offset, byteSize), byteSize, stream);
    }

    private void read(long address, long byteSize) {
        kernels.countMismatches(address, byteSize / Integer.BYTES, WORD, mismatches.address(), stream);
    }

    private void write(long address, long byteSize) {
        driver.copies().fillWords(0, address, WORD, byteSize / Integer.BYTES, stream);
    }

    private void measure(String way, double share, long byteSize, String step, int pass, Runnable work) {
        mismatches.fill((byte) 0);
        long begin = driver.nanoTime();
        work.run();
        driver.streams().synchronize(0, stream);
        long nanos = driver.nanoTime() - begin;
        if (mismatches.get(java.lang.foreign.ValueLayout.JAVA_LONG, 0) != 0) {
            throw new IllegalStateException(way + " found other contents than it had written");
        }
        System.out.printf(
                Locale.ROOT,
                "%s,%.1f,%d,%s,%d,%.3f,%.2f%n",
                way,
                share,
                byteSize,
                step,
                pass,
                nanos / 1e6,
                (double) byteSize / nanos);
    }
}
