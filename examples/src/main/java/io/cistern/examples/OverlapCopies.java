package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Locale;

/// Copies batches to the GPU, processes them and copies them back, in three versions, and times each.
///
/// 1. The program waits for each copy.
/// 2. Copies are non-blocking, but the host memory is not pinned: the driver stages it through its own pinned
///    memory, and a copy back waits.
/// 3. Copies are non-blocking, from pinned memory, alternating between two streams: copies in both directions
///    and kernels overlap.
///
/// Arguments: batches (24), MiB of each (16). On a simulated GPU the times are virtual and do not include the
/// host's own work.
public final class OverlapCopies {
    private static final int DEVICE = 0;
    private static final int KERNELS_A_BATCH = 4;

    private final DeviceMemory memory = DeviceMemory.system();
    private final CudaFunction add;
    private final int batches;
    private final int byteSize;

    private OverlapCopies(CudaFunction add, int batches, int byteSize) {
        this.add = add;
        this.batches = batches;
        this.byteSize = byteSize;
    }

    /// Prints the time of each version.
    public static void main(String[] arguments) throws IOException {
        int batches = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 24;
        int byteSize = (arguments.length > 1 ? Integer.parseInt(arguments[1]) : 16) << 20;
        try (CudaModule module = CudaModule.load(DeviceMemory.system(), DEVICE, Resources.text("vector_add.ptx"))) {
            OverlapCopies example = new OverlapCopies(module.function("vector_add"), batches, byteSize);
            example.time("synchronous", () -> example.oneStream(CopyMode.BLOCKING));
            example.time("non-blocking, pageable memory", () -> example.oneStream(CopyMode.NON_BLOCKING));
            example.time("non-blocking, pinned memory, two streams", example::twoStreams);
        }
    }

    /// Takes the better of two runs, because the first one allocates its memory from the driver.
    private void time(String version, Runnable work) {
        long best = Long.MAX_VALUE;
        for (int run = 0; run < 2; run++) {
            long begin = memory.driver().nanoTime();
            work.run();
            memory.driver().devices().synchronize(DEVICE);
            best = Math.min(best, memory.driver().nanoTime() - begin);
        }
        System.out.printf(Locale.ROOT, "%s: %.2f ms%n", version, best / 1e6);
    }

    private void oneStream(CopyMode mode) {
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                Arena arena = Arena.ofConfined()) {
            MemorySegment in = arena.allocate(byteSize, 64);
            MemorySegment out = arena.allocate(byteSize, 64);
            for (int batch = 0; batch < batches; batch++) {
                try (DeviceBuffer x = DeviceBuffer.allocate(byteSize, stream)) {
                    x.copyFrom(in, stream, mode);
                    work(x, stream);
                    x.copyTo(out, stream, mode);
                }
            }
            stream.synchronize();
        }
    }

    private void twoStreams() {
        try (CudaStream first = CudaStream.open(memory, DEVICE);
                CudaStream second = CudaStream.open(memory, DEVICE);
                PinnedBuffer in = PinnedMemory.of(memory).allocate(byteSize);
                PinnedBuffer firstOut = PinnedMemory.of(memory).allocate(byteSize);
                PinnedBuffer secondOut = PinnedMemory.of(memory).allocate(byteSize)) {
            for (int batch = 0; batch < batches; batch++) {
                boolean even = batch % 2 == 0;
                CudaStream stream = even ? first : second;
                try (DeviceBuffer x = DeviceBuffer.allocate(byteSize, stream)) {
                    x.copyFrom(in, stream, CopyMode.NON_BLOCKING);
                    work(x, stream);
                    x.copyTo(even ? firstOut : secondOut, stream, CopyMode.NON_BLOCKING);
                }
            }
            first.synchronize();
            second.synchronize();
        }
    }

    private void work(DeviceBuffer x, CudaStream stream) {
        int count = byteSize / Float.BYTES;
        for (int i = 0; i < KERNELS_A_BATCH; i++) {
            add.launch(count / 256, 256, stream, x, x, x, count);
        }
    }
}
