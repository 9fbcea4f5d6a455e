package io.cistern.benchmarks;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.benchmarks.WaysInTurns.Work;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CopyOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.host.Memcpy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/// Measures copies between an array and a device beside the driver's own copy of pageable memory in C. It
/// measures buffer copies; to the device, also copies by the driver itself (`cistern.copies.direct`) and the
/// same staging in C. It also measures moving the bytes alone, without a driver. The constants of `StagedCopy`
/// come from here.
///
/// Copies follow each other ("stream"), or the program waits for each ("each").
///
/// Arguments: the library made of `peers/buffer_peers.c`, rounds for copies of up to 4 MiB (30). Prints a line
/// of JSON for each way.
public final class ArrayCopies {
    private static final int MIB = 1 << 20;

    /// The size of the pieces that buffers copy through.
    private static final int PIECE_BYTES = 256 << 10;

    /// On both sides of two thresholds: up to 2 MiB, buffers move bytes by `memcpy`; from 5 MiB on, copies take
    /// more than one large piece.
    private static final int[] SMALL = {64 << 10, MIB, 2 * MIB, 4 * MIB, 6 * MIB};

    private static final int[] LARGE = {16 * MIB, 256 * MIB};

    /// The largest copies take fewer rounds.
    private static final int ROUNDS_OF_LARGE = 5;

    private final OpenMemory open = new OpenMemory("async");
    private final CudaStream stream = CudaStream.open(open.memory(), 0);
    private final DeviceMemory direct = DeviceMemory.builder(open.driver()).open();
    private final BufferPeersInC inC;
    private final int rounds;

    private ArrayCopies(Path library, int rounds) {
        inC = new BufferPeersInC(library, System.getProperty("cistern.cuda.library", "libcuda.so.1"));
        this.rounds = rounds;
        CopyOptions.of(direct).copyArraysDirectly(true);
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        ArrayCopies measurement =
                new ArrayCopies(Path.of(arguments[0]), arguments.length > 1 ? Integer.parseInt(arguments[1]) : 30);
        measurement.bytesAlone();
        for (int byteSize : SMALL) {
            measurement.toDevice(byteSize, measurement.rounds, CopyMode.NON_BLOCKING);
            measurement.toDevice(byteSize, measurement.rounds, CopyMode.BLOCKING);
            measurement.toArray(byteSize, measurement.rounds);
        }
        for (int byteSize : LARGE) {
            measurement.toDevice(byteSize, ROUNDS_OF_LARGE, CopyMode.NON_BLOCKING);
            measurement.toArray(byteSize, ROUNDS_OF_LARGE);
        }
        measurement.stream.close();
        measurement.direct.close();
        measurement.open.close();
    }

    /// Measures moving the bytes into pinned memory, without any device.
    private void bytesAlone() {
        try (Copied copied = new Copied(MIB);
                PinnedBuffer pinned = PinnedMemory.of(open.memory()).allocate(MIB)) {
            MemorySegment target = pinned.segment();
            new WaysInTurns(open, rounds, "bytes alone", MIB)
                    .add("C, memcpy", n -> inC.moves(target.address(), copied.pageable, MIB, n))
                    .add("Java, memcpy", Work.of(stream, () -> Memcpy.copy(copied.array, target)))
                    .add("Java, segment", Work.of(stream, () -> target.copyFrom(copied.array)))
                    .compare(64);
        }
    }

    private void toDevice(int byteSize, int rounds, CopyMode mode) {
        boolean each = mode == CopyMode.BLOCKING;
        long handle = stream.handle();
        try (Copied copied = new Copied(byteSize);
                PinnedBuffer pinned = PinnedMemory.of(open.memory()).allocate(2 * PIECE_BYTES)) {
            long pieces = pinned.segment().address();
            WaysInTurns ways =
                    new WaysInTurns(open, rounds, "array to device, " + (each ? "each" : "stream"), byteSize);
            ways.add("C", n -> inC.copies(0, each, copied.address, copied.pageable, byteSize, handle, n));
            ways.add("buffers", Work.of(stream, () -> copied.device.copyFrom(copied.array, handle, mode)));
            ways.add("buffers, direct", Work.of(stream, () -> copied.direct.copyFrom(copied.array, handle, mode)));
            if (byteSize >= PIECE_BYTES) {
                ways.add(
                        "C, 2 pieces of 256 KiB",
                        n -> inC.staged(
                                each, copied.address, copied.pageable, byteSize, pieces, PIECE_BYTES, handle, n));
            }
            ways.compare(countOf(byteSize));
        }
    }

    private void toArray(int byteSize, int rounds) {
        try (Copied copied = new Copied(byteSize)) {
            new WaysInTurns(open, rounds, "device to array", byteSize)
                    .add("C", n -> inC.copies(1, false, copied.pageable, copied.address, byteSize, stream.handle(), n))
                    .add("buffers", Work.of(stream, () -> copied.device.copyTo(copied.array)))
                    .compare(countOf(byteSize));
        }
    }

    private static long countOf(int byteSize) {
        return Math.max(1, 64L * MIB / byteSize);
    }

    /// An array, as much pageable memory, and a buffer, with a second view of that buffer for direct copies.
    private final class Copied implements AutoCloseable {
        final DeviceBuffer device;
        final DeviceBuffer direct;
        final long address;
        final long pageable;
        final MemorySegment array;
        private final Arena arena = Arena.ofConfined();

        Copied(int byteSize) {
            device = DeviceBuffer.allocate(byteSize, stream);
            address = device.address();
            direct = DeviceBuffer.ofForeign(ArrayCopies.this.direct, address, byteSize, 0, stream.handle());
            pageable = arena.allocate(byteSize, 64).fill((byte) 1).address();
            array = MemorySegment.ofArray(new byte[byteSize]);
        }

        @Override
        public void close() {
            stream.synchronize();
            arena.close();
            direct.close();
            device.close();
        }
    }
}
