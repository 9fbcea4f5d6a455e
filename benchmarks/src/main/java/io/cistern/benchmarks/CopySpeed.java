package io.cistern.benchmarks;

import io.cistern.CopyMode;
import io.cistern.CudaStream;
import io.cistern.DeviceBuffer;
import io.cistern.PinnedBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/// Copies through buffers beside the same calls in C: in one process, on one stream, in rounds that take
/// turns. Beside them what pageable memory and arrays take, which C has no better way for.
///
/// Arguments: the library made of `peers/buffer_peers.c`, rounds (9). Prints a line of JSON for each.
public final class CopySpeed {
    private static final long[] BYTE_SIZES = {64 << 10, 1 << 20, 16 << 20, 256 << 20};

    private final OpenMemory open = new OpenMemory("caching");
    private final CudaStream stream = CudaStream.open(open.memory(), 0);
    private final BufferPeersInC inC;
    private final int rounds;

    private CopySpeed(Path library, int rounds) {
        inC = new BufferPeersInC(library, System.getProperty("cistern.cuda.library", "libcuda.so.1"));
        this.rounds = rounds;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        CopySpeed measurement =
                new CopySpeed(Path.of(arguments[0]), arguments.length > 1 ? Integer.parseInt(arguments[1]) : 9);
        for (long byteSize : BYTE_SIZES) {
            measurement.copies(byteSize);
        }
        measurement.stream.close();
        measurement.open.close();
    }

    private interface Work {
        /// Nanoseconds of so many.
        long nanos(long count);
    }

    private void copies(long byteSize) {
        long count = Math.max(1, (256L << 20) / byteSize / 4);
        try (DeviceBuffer device = DeviceBuffer.allocate(byteSize, stream);
                DeviceBuffer other = DeviceBuffer.allocate(byteSize, stream);
                PinnedBuffer pinned = open.memory().pinned().allocate(byteSize);
                Arena arena = Arena.ofConfined()) {
            long host = pinned.segment().address();
            long handle = stream.handle();
            MemorySegment pageable = arena.allocate(byteSize);
            MemorySegment array = MemorySegment.ofArray(new byte[Math.toIntExact(byteSize)]);
            compare(
                    "pinned to device",
                    byteSize,
                    count,
                    n -> inC.copies(0, device.address(), host, byteSize, handle, n),
                    timed(() -> device.copyFrom(pinned, handle, CopyMode.NON_BLOCKING)));
            compare(
                    "device to pinned",
                    byteSize,
                    count,
                    n -> inC.copies(1, host, device.address(), byteSize, handle, n),
                    timed(() -> device.copyTo(pinned, handle, CopyMode.NON_BLOCKING)));
            compare(
                    "on the device",
                    byteSize,
                    count,
                    n -> inC.copies(2, other.address(), device.address(), byteSize, handle, n),
                    timed(() -> other.copyFrom(device, handle)));
            compare(
                    "pageable to device",
                    byteSize,
                    count,
                    n -> inC.copies(0, device.address(), pageable.address(), byteSize, handle, n),
                    timed(() -> device.copyFrom(pageable, handle, CopyMode.NON_BLOCKING)));
            compare(
                    "array to device",
                    byteSize,
                    count,
                    n -> inC.copies(0, device.address(), pageable.address(), byteSize, handle, n),
                    timed(() -> device.copyFrom(array, handle, CopyMode.NON_BLOCKING)));
            compare(
                    "device to array",
                    byteSize,
                    count,
                    n -> inC.copies(1, pageable.address(), device.address(), byteSize, handle, n),
                    timed(() -> device.copyTo(array)));
        }
    }

    private Work timed(Runnable one) {
        return count -> {
            long begin = System.nanoTime();
            for (long i = 0; i < count; i++) {
                one.run();
            }
            stream.synchronize();
            return System.nanoTime() - begin;
        };
    }

    /// The first rounds are for the compiler, and for the pages of host memory.
    private void compare(String what, long byteSize, long count, Work c, Work java) {
        double[] inCNanos = new double[rounds];
        double[] inJavaNanos = new double[rounds];
        for (int round = -Math.max(2, rounds / 2); round < rounds; round++) {
            open.driver().memory().freeBytes(0); // makes the context current, for C
            double first = (double) c.nanos(count) / count;
            double second = (double) java.nanos(count) / count;
            if (round >= 0) {
                inCNanos[round] = first;
                inJavaNanos[round] = second;
            }
        }
        double ofC = median(inCNanos);
        double ofJava = median(inJavaNanos);
        print(what, "C", byteSize, ofC, 1);
        print(what, "buffers", byteSize, ofJava, ofC / ofJava);
    }

    /// @param faster than C
    private static void print(String what, String by, long byteSize, double nanos, double faster) {
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"%s, %d B\",\"allocator\":\"%s\",\"micros\":%.3f,\"faster\":%.3f,"
                        + "\"gigabytesPerSecond\":%.1f}%n",
                what,
                byteSize,
                by,
                nanos / 1000,
                faster,
                byteSize / nanos);
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
