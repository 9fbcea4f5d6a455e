package io.cistern.benchmarks;

import io.cistern.CopyMode;
import io.cistern.CudaStream;
import io.cistern.DeviceBuffer;
import io.cistern.benchmarks.ArrayStaging.Mover;
import io.cistern.benchmarks.ArrayStaging.Shape;
import io.cistern.benchmarks.WaysInTurns.Work;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Ways to copy between an array and a device, beside the driver's own copy of pageable memory in C: what buffers do;
/// other pieces of pinned memory, and who moves the bytes into them; the driver called with the array itself; the same
/// staging in C. Also the bytes alone, without a driver. The constants of `StagedCopy` come from here.
///
/// Copies follow each other ("stream"), or each is waited for ("each").
///
/// Arguments: the library made of `peers/buffer_peers.c`, rounds for 1 MiB (30). Prints a line of JSON for each way.
public final class ArrayCopies {
    private static final int MIB = 1 << 20;

    /// For the largest copies, fewer.
    private static final int ROUNDS_OF_LARGE = 5;

    private static final List<Shape> SHAPES = List.of(
            new Shape(128 << 10, 2, Mover.SEGMENT),
            new Shape(256 << 10, 2, Mover.SEGMENT),
            new Shape(256 << 10, 4, Mover.SEGMENT),
            new Shape(512 << 10, 2, Mover.SEGMENT),
            new Shape(256 << 10, 2, Mover.MEMCPY),
            new Shape(512 << 10, 2, Mover.MEMCPY));

    private static final List<Shape> TO_DEVICE_ONLY = List.of(
            new Shape(512 << 10, 2, Mover.SEGMENT).firstShort(),
            new Shape(256 << 10, 2, Mover.SEGMENT).writeCombined(),
            new Shape(512 << 10, 2, Mover.SEGMENT).writeCombined(),
            new Shape(256 << 10, 2, Mover.SEGMENT).madeAnew());

    private static final List<Shape> OF_LARGE =
            List.of(new Shape(4 * MIB, 4, Mover.SEGMENT), new Shape(4 * MIB, 4, Mover.MEMCPY));

    private final OpenMemory open = new OpenMemory("async");
    private final CudaStream stream = CudaStream.open(open.memory(), 0);
    private final BufferPeersInC inC;
    private final ArrayWithDriver withDriver;
    private final int rounds;

    private ArrayCopies(Path library, int rounds) {
        String driver = System.getProperty("cistern.cuda.library", "libcuda.so.1");
        inC = new BufferPeersInC(library, driver);
        withDriver = new ArrayWithDriver(driver);
        this.rounds = rounds;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        ArrayCopies measurement =
                new ArrayCopies(Path.of(arguments[0]), arguments.length > 1 ? Integer.parseInt(arguments[1]) : 30);
        measurement.bytesAlone(MIB);
        measurement.small(64 << 10);
        measurement.small(MIB);
        measurement.large(16 * MIB);
        measurement.large(256 * MIB);
        measurement.stream.close();
        measurement.open.close();
    }

    /// What moving the bytes into pinned memory takes, without any device.
    private void bytesAlone(int byteSize) {
        try (Arena arena = Arena.ofConfined();
                ArrayStaging staging =
                        new ArrayStaging(open, stream, withDriver, new Shape(byteSize, 2, Mover.SEGMENT))) {
            MemorySegment array = MemorySegment.ofArray(new byte[byteSize]);
            MemorySegment pinned = staging.piece(0, byteSize);
            long pageable = arena.allocate(byteSize, 64).fill((byte) 1).address();
            WaysInTurns ways = new WaysInTurns(open, rounds, "bytes alone", byteSize);
            for (BufferPeersInC.Mover mover : BufferPeersInC.Mover.values()) {
                ways.add("C, " + mover, n -> inC.moves(mover, pinned.address(), pageable, byteSize, n));
            }
            for (Mover mover : Mover.values()) {
                ways.add(mover.toString(), Work.of(stream, () -> mover.move(array, pinned)));
            }
            ways.compare(64L * MIB / byteSize);
        }
    }

    private void small(int byteSize) {
        for (boolean each : new boolean[] {false, true}) {
            try (Copied copied = new Copied(byteSize)) {
                WaysInTurns ways = copied.toDevice(each, rounds);
                copied.arrayItself(ways, each);
                copied.stagedInC(ways, each);
                copied.staged(ways, SHAPES, true, each);
                copied.staged(ways, TO_DEVICE_ONLY, true, each);
                ways.compare(64L * MIB / byteSize);
            }
        }
        try (Copied copied = new Copied(byteSize)) {
            WaysInTurns ways = copied.toArray(rounds);
            copied.staged(ways, SHAPES, false, false);
            ways.compare(64L * MIB / byteSize);
        }
    }

    private void large(int byteSize) {
        try (Copied copied = new Copied(byteSize)) {
            WaysInTurns toDevice = copied.toDevice(false, ROUNDS_OF_LARGE);
            copied.staged(toDevice, OF_LARGE, true, false);
            toDevice.compare(Math.max(1, 64 * MIB / byteSize));
            WaysInTurns toArray = copied.toArray(ROUNDS_OF_LARGE);
            copied.staged(toArray, OF_LARGE, false, false);
            toArray.compare(Math.max(1, 64 * MIB / byteSize));
        }
    }

    /// What is copied, and the ways that need nothing but it.
    private final class Copied implements AutoCloseable {
        private final int byteSize;
        private final DeviceBuffer device;
        private final Arena arena = Arena.ofConfined();
        private final List<ArrayStaging> stagings = new ArrayList<>();
        private final long pageable;
        private final MemorySegment array;
        private final long address;
        private final long handle = stream.handle();

        Copied(int byteSize) {
            this.byteSize = byteSize;
            device = DeviceBuffer.allocate(byteSize, stream);
            address = device.address();
            pageable = arena.allocate(byteSize, 64).fill((byte) 1).address();
            array = MemorySegment.ofArray(new byte[byteSize]);
        }

        WaysInTurns toDevice(boolean each, int rounds) {
            CopyMode mode = each ? CopyMode.BLOCKING : CopyMode.NON_BLOCKING;
            return new WaysInTurns(open, rounds, "array to device, " + (each ? "each" : "stream"), byteSize)
                    .add("C", n -> inC.copies(0, each, address, pageable, byteSize, handle, n))
                    .add("buffers", Work.of(stream, () -> device.copyFrom(array, handle, mode)));
        }

        WaysInTurns toArray(int rounds) {
            return new WaysInTurns(open, rounds, "device to array", byteSize)
                    .add("C", n -> inC.copies(1, false, pageable, address, byteSize, handle, n))
                    .add("buffers", Work.of(stream, () -> device.copyTo(array)));
        }

        void arrayItself(WaysInTurns ways, boolean each) {
            ways.add("the array itself", work(() -> withDriver.toDevice(address, array, stream), each));
        }

        private Work work(Runnable copy, boolean each) {
            return Work.of(
                    stream,
                    each
                            ? () -> {
                                copy.run();
                                stream.synchronize();
                            }
                            : copy);
        }

        void stagedInC(WaysInTurns ways, boolean each) {
            for (int pieceBytes : new int[] {256 << 10, 512 << 10}) {
                if (pieceBytes <= byteSize) {
                    long pinned = staging(new Shape(pieceBytes, 2, Mover.SEGMENT))
                            .piece(0, pieceBytes)
                            .address();
                    for (BufferPeersInC.Mover mover : BufferPeersInC.Mover.values()) {
                        ways.add(
                                "C, 2 pieces of " + (pieceBytes >> 10) + " KiB, " + mover,
                                n -> inC.staged(
                                        mover, each, address, pageable, byteSize, pinned, pieceBytes, handle, n));
                    }
                }
            }
        }

        void staged(WaysInTurns ways, List<Shape> shapes, boolean toDevice, boolean each) {
            for (Shape shape : shapes) {
                if (shape.pieceBytes() <= byteSize) {
                    ArrayStaging staging = staging(shape);
                    Runnable copy =
                            toDevice ? () -> staging.toDevice(address, array) : () -> staging.toHost(array, address);
                    ways.add(shape.toString(), work(copy, each));
                }
            }
        }

        private ArrayStaging staging(Shape shape) {
            ArrayStaging staging = new ArrayStaging(open, stream, withDriver, shape);
            stagings.add(staging);
            return staging;
        }

        @Override
        public void close() {
            stream.synchronize();
            stagings.forEach(ArrayStaging::close);
            arena.close();
            device.close();
        }
    }
}
