package io.cistern.benchmarks;

import io.cistern.CudaStream;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/// Measures copies through buffers beside the same calls in C: in one process, on one stream, in alternating
/// rounds. It also measures copies of pageable memory and arrays, for which C has no better way.
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

    private void copies(long byteSize) {
        try (DeviceBuffer device = DeviceBuffer.allocate(byteSize, stream);
                DeviceBuffer other = DeviceBuffer.allocate(byteSize, stream);
                PinnedBuffer pinned = PinnedMemory.of(open.memory()).allocate(byteSize);
                Arena arena = Arena.ofConfined()) {
            long host = pinned.segment().address();
            long handle = stream.handle();
            long address = device.address();
            MemorySegment pageable = arena.allocate(byteSize);
            MemorySegment array = MemorySegment.ofArray(new byte[Math.toIntExact(byteSize)]);
            compare(
                    "pinned to device",
                    byteSize,
                    inC(0, address, host, byteSize),
                    () -> device.copyFrom(pinned, handle, CopyMode.NON_BLOCKING));
            compare(
                    "device to pinned",
                    byteSize,
                    inC(1, host, address, byteSize),
                    () -> device.copyTo(pinned, handle, CopyMode.NON_BLOCKING));
            compare(
                    "on the device",
                    byteSize,
                    inC(2, other.address(), address, byteSize),
                    () -> other.copyFrom(device, handle));
            compare(
                    "pageable to device",
                    byteSize,
                    inC(0, address, pageable.address(), byteSize),
                    () -> device.copyFrom(pageable, handle, CopyMode.NON_BLOCKING));
            compare(
                    "array to device",
                    byteSize,
                    inC(0, address, pageable.address(), byteSize),
                    () -> device.copyFrom(array, handle, CopyMode.NON_BLOCKING));
            compare(
                    "device to array",
                    byteSize,
                    inC(1, pageable.address(), address, byteSize),
                    () -> device.copyTo(array));
        }
    }

    private WaysInTurns.Work inC(int kind, long target, long source, long byteSize) {
        return n -> inC.copies(kind, false, target, source, byteSize, stream.handle(), n);
    }

    private void compare(String what, long byteSize, WaysInTurns.Work inC, Runnable inJava) {
        new WaysInTurns(open, rounds, what, byteSize)
                .add("C", inC)
                .add("buffers", WaysInTurns.Work.of(stream, inJava))
                .compare(Math.max(1, (64L << 20) / byteSize));
    }
}
