package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.ManagedMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;
import java.util.function.Consumer;

/// Measures managed memory against device memory and copies of pinned memory, for a job that goes over its data several
/// times. Plain memory takes all of the GPU's free memory but a limit; the working set is 0.9, 1.1 and 1.5 of that
/// limit.
///
/// The data starts on the host. `read` is a kernel that reads all of them, `write` a fill of all of them. The kernel
/// checks the contents: a difference ends the program with an error.
///
/// | way | |
/// |---|---|
/// | `device` | plain memory, copied there once before; left out if the data do not fit |
/// | `copies` | plain memory of a quarter of the limit; passes copy the data through it, back if they write |
/// | `touch` | managed memory, moved by the page faults of the kernel |
/// | `prefetch` | managed memory, prefetched before each pass |
/// | `prefer_device` | managed memory that prefers the device |
/// | `prefer_host` | managed memory that prefers the host and is mapped on the device: nothing moves |
///
/// Arguments: the limit in MiB (512), passes (3), `managed` or another spec of managed memory. Prints CSV. Times are
/// the driver's, so they are virtual on a simulated GPU, which charges nothing for page faults.
public final class ManagedCosts {
    private static final MemoryLocation GPU = MemoryLocation.device(0);
    private static final double[] SHARES = {0.9, 1.1, 1.5};
    private static final long MIB = 1 << 20;
    private static final int WORD = 0x01010101;

    private final OpenMemory open = new OpenMemory("direct"); // ends with the process
    private final DeviceMemory memory = open.memory();
    private final CudaDriver driver = open.driver();
    private final long stream = open.newStream();
    private final MemoryKernels kernels = MemoryKernels.load(driver, 0);
    private final MemorySegment mismatches = driver.memory().allocateHost(0, Long.BYTES);
    private final long limit;
    private final int passes;
    private final String spec;

    private ManagedCosts(long limit, int passes, String spec) {
        this.limit = limit;
        this.passes = passes;
        this.spec = spec;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        long limit = (arguments.length > 0 ? Long.parseLong(arguments[0]) : 512) * MIB;
        int passes = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 3;
        new ManagedCosts(limit, passes, arguments.length > 2 ? arguments[2] : "managed").run();
    }

    private void run() {
        System.out.println("way,share,bytes,step,pass,millis,gigabytes_per_second");
        for (long piece = 1024 * MIB; piece >= 2 * MIB; piece /= 2) {
            while (driver.memory().freeBytes(0) - limit >= piece) {
                driver.memory().allocate(0, piece);
            }
        }
        for (double share : SHARES) {
            long byteSize = (long) (share * limit) / (2 * MIB) * (2 * MIB);
            MemorySegment host = driver.memory().allocateHost(0, byteSize).fill((byte) WORD);
            if (share < 1) {
                onDevice(share, host);
            }
            byCopies(share, host);
            driver.memory().freeHost(0, host);
            managed("touch", share, byteSize, _ -> {}, _ -> {});
            managed("prefetch", share, byteSize, _ -> {}, buffer -> ManagedMemory.prefetch(buffer, GPU, stream));
            if (spec.equals("managed")) { // A pool of another spec takes no advice.
                managed("prefer_device", share, byteSize, buffer -> advise(buffer, GPU), _ -> {});
                managed("prefer_host", share, byteSize, buffer -> advise(buffer, MemoryLocation.host()), _ -> {});
            }
        }
    }

    private static void advise(DeviceBuffer buffer, MemoryLocation preferred) {
        ManagedMemory.advise(buffer, MemoryAdvice.SET_PREFERRED_LOCATION, preferred);
        ManagedMemory.advise(buffer, MemoryAdvice.SET_ACCESSED_BY, GPU);
    }

    private void onDevice(double share, MemorySegment host) {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, host.byteSize(), 0, stream)) {
            driver.copies().toDevice(0, buffer.address(), host, host.byteSize(), stream);
            passes("device", share, buffer, _ -> {});
        }
    }

    private void managed(
            String way, double share, long byteSize, Consumer<DeviceBuffer> advice, Consumer<DeviceBuffer> before) {
        try (MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
                DeviceBuffer buffer = DeviceBuffer.allocate(pool, byteSize, 0, stream)) {
            advice.accept(buffer);
            buffer.hostView().fill((byte) WORD);
            passes(way, share, buffer, before);
        }
    }

    private void passes(String way, double share, DeviceBuffer buffer, Consumer<DeviceBuffer> before) {
        measure(way, share, buffer.byteSize(), "read", () -> {
            before.accept(buffer);
            read(buffer.address(), buffer.byteSize());
        });
        measure(way, share, buffer.byteSize(), "write", () -> {
            before.accept(buffer);
            write(buffer.address(), buffer.byteSize());
        });
    }

    private void byCopies(double share, MemorySegment host) {
        long piece = limit / 4;
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, piece, 0, stream)) {
            measure(
                    "copies",
                    share,
                    host.byteSize(),
                    "read",
                    () -> inPieces(host, piece, part -> {
                        driver.copies().toDevice(0, buffer.address(), part, part.byteSize(), stream);
                        read(buffer.address(), part.byteSize());
                    }));
            measure(
                    "copies",
                    share,
                    host.byteSize(),
                    "write",
                    () -> inPieces(host, piece, part -> {
                        driver.copies().toDevice(0, buffer.address(), part, part.byteSize(), stream);
                        write(buffer.address(), part.byteSize());
                        driver.copies().toHost(0, part, buffer.address(), part.byteSize(), stream);
                    }));
        }
    }

    private static void inPieces(MemorySegment host, long piece, Consumer<MemorySegment> action) {
        for (long at = 0; at < host.byteSize(); at += piece) {
            action.accept(host.asSlice(at, Math.min(piece, host.byteSize() - at)));
        }
    }

    private void read(long address, long byteSize) {
        kernels.countMismatches(address, byteSize / Integer.BYTES, WORD, mismatches.address(), stream);
    }

    private void write(long address, long byteSize) {
        driver.copies().fillWords(0, address, WORD, byteSize / Integer.BYTES, stream);
    }

    private void measure(String way, double share, long byteSize, String step, Runnable work) {
        for (int pass = 1; pass <= passes; pass++) {
            mismatches.fill((byte) 0);
            driver.streams().synchronize(0, stream);
            long begin = driver.nanoTime();
            work.run();
            driver.streams().synchronize(0, stream);
            long nanos = driver.nanoTime() - begin;
            if (mismatches.get(ValueLayout.JAVA_LONG, 0) != 0) {
                throw new IllegalStateException(way + " found contents that it had not written");
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
}
