package io.cistern.faults;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// What programs do with buffers that spill.
final class SpillWorkloads {
    private static final long MIB = 1 << 20;
    private static final long SIZE = 2 * MIB;

    private SpillWorkloads() {}

    /// Buffers that move between all places, by hand and for a request, and refusals half way.
    static void all(GpuProgram program) throws Exception {
        Path folder = Files.createTempDirectory("cistern-spills");
        SpillStore store = SpillStore.open(program.memory, SIZE + MIB, folder);
        List<SpillableBuffer> buffers = new ArrayList<>();
        program.toClose.add(() -> end(program, store, buffers, folder));
        for (int i = 0; i < 4; i++) {
            buffers.add(store.allocate(SIZE, 0, program.streams[i % 3], i % 2));
        }
        store.spill(0, Long.MAX_VALUE);
        for (SpillableBuffer each : buffers) {
            for (long stream : program.streams) {
                each.acquire(stream).close();
            }
        }
        program.allocate(898 * MIB, 0);
        program.freeAll(1);
        misuses(program, store, buffers.getLast());
        buffers.removeLast();
        refusals(program, store, buffers, folder);
        buffers.get(1).close();
        store.close();
        refused(() -> store.allocate(SIZE, 0, 0, 0));
    }

    private static void refusals(GpuProgram program, SpillStore store, List<SpillableBuffer> buffers, Path folder)
            throws IOException {
        for (SpillableBuffer each : buffers) {
            each.acquire(program.streams[0]).close();
        }
        program.gpu.faults().failOn(DriverCall.MEMCPY_DTOH_ASYNC, 0, 1, CudaResult.INVALID_VALUE);
        store.spill(0, SIZE);
        program.gpu.faults().clear();
        Path elsewhere = folder.resolveSibling(folder.getFileName() + "-elsewhere");
        Files.move(folder, elsewhere);
        try {
            store.spill(0, Long.MAX_VALUE);
        } finally {
            Files.move(elsewhere, folder);
        }
        store.spill(0, Long.MAX_VALUE);
        for (Path file : files(folder)) {
            Files.write(file, new byte[1]);
        }
        for (SpillableBuffer each : buffers) {
            try {
                each.acquire(program.streams[0]).close();
            } catch (UncheckedIOException cutOff) {
                // it can still be closed
            }
        }
    }

    private static void misuses(GpuProgram program, SpillStore store, SpillableBuffer buffer) {
        SpillableBuffer.Lease lease = buffer.acquire(program.streams[0]);
        try (lease) {
            refused(buffer::close);
        }
        refused(lease::address);
        buffer.close();
        refused(() -> buffer.acquire(program.streams[0]));
        refused(() -> store.allocate(0, 0, 0, 0));
    }

    private static void refused(Runnable misuse) {
        try {
            misuse.run();
        } catch (IllegalStateException | IllegalArgumentException expected) {
            return;
        }
        throw new AssertionError("not refused");
    }

    /// Other blocks may be where buffers were whose close failed.
    private static void end(GpuProgram program, SpillStore store, List<SpillableBuffer> buffers, Path folder)
            throws IOException {
        for (SpillableBuffer each : buffers) {
            program.allocate(each.byteSize(), 0);
        }
        buffers.forEach(SpillableBuffer::close);
        store.close();
        if (!files(folder).isEmpty()) {
            throw new AssertionError("files are left");
        }
        Files.delete(folder);
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.toList();
        }
    }
}
