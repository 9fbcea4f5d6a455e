package io.cistern.benchmarks;

import io.cistern.CopyMode;
import io.cistern.CudaStream;
import io.cistern.DeviceBuffer;
import io.cistern.PinnedBuffer;
import io.cistern.cuda.Copies;
import io.cistern.cuda.Events;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// Ways to copy between an array and a device, beside the driver's own copy of pageable memory in C: the size of the
/// pieces that go through pinned memory, how many there are in turns, and who moves the bytes between heap and piece:
/// [MemorySegment#copy], or C's `memcpy` called without a transition. The constants of `StagedCopy` come from here.
///
/// Arguments: the library made of `peers/buffer_peers.c`, rounds (7). Prints a line of JSON for each way.
@SuppressWarnings("restricted")
public final class HeapCopyShapes {
    private static final long[] BYTE_SIZES = {1 << 20, 16 << 20, 256 << 20};
    private static final int[] PIECE_KIBIBYTES = {128, 256, 512, 1024, 4096};
    private static final int[] TURNS = {2, 4};
    private static final int DEVICE = 0;

    private static final MethodHandle MEMCPY = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("memcpy"),
                    FunctionDescriptor.of(
                            ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG),
                    Linker.Option.critical(true));

    private final OpenMemory open = new OpenMemory("async");
    private final CudaStream stream = CudaStream.open(open.memory(), DEVICE);
    private final Copies copies = open.driver().copies();
    private final Events events = open.driver().events();
    private final BufferPeersInC inC;
    private final int rounds;

    private HeapCopyShapes(Path library, int rounds) {
        inC = new BufferPeersInC(library, System.getProperty("cistern.cuda.library", "libcuda.so.1"));
        this.rounds = rounds;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        HeapCopyShapes measurement =
                new HeapCopyShapes(Path.of(arguments[0]), arguments.length > 1 ? Integer.parseInt(arguments[1]) : 7);
        for (long byteSize : BYTE_SIZES) {
            measurement.measure(byteSize);
        }
        measurement.stream.close();
        measurement.open.close();
    }

    private enum Mover {
        SEGMENT,
        MEMCPY;

        void move(MemorySegment source, MemorySegment target) {
            if (this == SEGMENT) {
                target.copyFrom(source);
                return;
            }
            try {
                MemorySegment _ = (MemorySegment) HeapCopyShapes.MEMCPY.invokeExact(target, source, source.byteSize());
            } catch (Throwable impossible) {
                throw new AssertionError(impossible);
            }
        }
    }

    private record Shape(int pieceBytes, int turns, Mover mover) {
        @Override
        public String toString() {
            return turns + " pieces of " + (pieceBytes >> 10) + " KiB, "
                    + mover.name().toLowerCase(Locale.ROOT);
        }
    }

    private void measure(long byteSize) {
        try (DeviceBuffer device = DeviceBuffer.allocate(byteSize, stream);
                Arena arena = Arena.ofConfined()) {
            long pageable = arena.allocate(byteSize).fill((byte) 1).address();
            MemorySegment array = MemorySegment.ofArray(new byte[Math.toIntExact(byteSize)]);
            long address = device.address();
            long handle = stream.handle();
            for (boolean toDevice : new boolean[] {true, false}) {
                String what = toDevice ? "array to device" : "device to array";
                List<Way> ways = new ArrayList<>();
                ways.add(new Way(
                        "C",
                        n -> toDevice
                                ? inC.copies(0, address, pageable, byteSize, handle, n)
                                : inC.copies(1, pageable, address, byteSize, handle, n)));
                ways.add(new Way("buffers", timed(() -> {
                    if (toDevice) {
                        device.copyFrom(array, handle, CopyMode.NON_BLOCKING);
                    } else {
                        device.copyTo(array);
                    }
                })));
                for (Shape shape : shapes(byteSize)) {
                    ways.add(new Way(shape.toString(), staged(shape, toDevice, address, array)));
                }
                compare(what, byteSize, ways);
            }
        }
    }

    private static List<Shape> shapes(long byteSize) {
        List<Shape> shapes = new ArrayList<>();
        for (Mover mover : Mover.values()) {
            for (int kibibytes : PIECE_KIBIBYTES) {
                for (int turns : TURNS) {
                    if (kibibytes * 1024L * (turns / 2) <= byteSize) {
                        shapes.add(new Shape(kibibytes << 10, turns, mover));
                    }
                }
            }
        }
        return shapes;
    }

    private record Way(String name, Work work) {}

    private interface Work {
        /// Nanoseconds of so many.
        long nanos(long count);
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

    /// Makes staging memory and events for each round, none for each copy.
    private Work staged(Shape shape, boolean toDevice, long address, MemorySegment array) {
        return count -> {
            try (Staging staging = new Staging(shape)) {
                return timed(() -> {
                            if (toDevice) {
                                staging.toDevice(address, array);
                            } else {
                                staging.toHost(array, address);
                            }
                        })
                        .nanos(count);
            }
        };
    }

    private final class Staging implements AutoCloseable {
        private final Shape shape;
        private final PinnedBuffer pinned;
        private final long[] passed;

        Staging(Shape shape) {
            this.shape = shape;
            pinned = open.memory().pinned().allocate((long) shape.turns() * shape.pieceBytes());
            passed = new long[shape.turns()];
            Arrays.setAll(passed, _ -> events.create(DEVICE));
        }

        private MemorySegment piece(int turn, long byteSize) {
            return pinned.segment().asSlice((long) turn * shape.pieceBytes(), byteSize);
        }

        void toDevice(long target, MemorySegment source) {
            int turn = 0;
            for (long at = 0; at < source.byteSize(); at += shape.pieceBytes()) {
                MemorySegment bytes = source.asSlice(at, Math.min(shape.pieceBytes(), source.byteSize() - at));
                MemorySegment piece = piece(turn, bytes.byteSize());
                events.synchronize(DEVICE, passed[turn]);
                shape.mover().move(bytes, piece);
                copies.toDevice(DEVICE, target + at, piece, bytes.byteSize(), stream.handle());
                events.record(DEVICE, passed[turn], stream.handle());
                turn = (turn + 1) % shape.turns();
            }
        }

        void toHost(MemorySegment target, long source) {
            long ahead = (long) shape.turns() * shape.pieceBytes();
            for (long at = 0; at < target.byteSize() + ahead; at += shape.pieceBytes()) {
                int turn = (int) (at / shape.pieceBytes() % shape.turns());
                long there = at - ahead;
                if (there >= 0 && there < target.byteSize()) {
                    MemorySegment bytes =
                            target.asSlice(there, Math.min(shape.pieceBytes(), target.byteSize() - there));
                    events.synchronize(DEVICE, passed[turn]);
                    shape.mover().move(piece(turn, bytes.byteSize()), bytes);
                }
                if (at < target.byteSize()) {
                    long length = Math.min(shape.pieceBytes(), target.byteSize() - at);
                    copies.toHost(DEVICE, piece(turn, length), source + at, length, stream.handle());
                    events.record(DEVICE, passed[turn], stream.handle());
                }
            }
        }

        @Override
        public void close() {
            stream.synchronize();
            for (long event : passed) {
                events.destroy(DEVICE, event);
            }
            pinned.close();
        }
    }

    /// The first rounds are for the compiler, and for the pages of host memory.
    private void compare(String what, long byteSize, List<Way> ways) {
        long count = Math.max(1, (64L << 20) / byteSize);
        double[][] nanos = new double[ways.size()][rounds];
        for (int round = -2; round < rounds; round++) {
            for (int way = 0; way < ways.size(); way++) {
                open.driver().memory().freeBytes(DEVICE); // makes the context current, for C
                nanos[way][Math.max(round, 0)] = (double) ways.get(way).work().nanos(count) / count;
            }
        }
        double ofC = median(nanos[0]);
        for (int way = 0; way < ways.size(); way++) {
            double ofWay = median(nanos[way]);
            System.out.printf(
                    Locale.ROOT,
                    "{\"measured\":\"%s, %d B\",\"way\":\"%s\",\"micros\":%.1f,\"faster\":%.3f,"
                            + "\"gigabytesPerSecond\":%.1f}%n",
                    what,
                    byteSize,
                    ways.get(way).name(),
                    ofWay / 1000,
                    ofC / ofWay,
                    byteSize / ofWay);
        }
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
