package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.async.sharing.ExportedBuffer;
import io.cistern.async.sharing.ExportedPool;
import io.cistern.async.sharing.ImportedPool;
import io.cistern.buffers.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/// Shares device memory between two processes without a copy: one serves a pool and publishes a buffer by name;
/// the other maps the buffer, reads the contents, writes, and unmaps it.
///
/// Runs on the GPU, or on the simulated one if there is no GPU; on Linux.
public final class TwoProcesses {
    private static final int DEVICE = 0;
    private static final long BYTES = 1 << 20;

    private final DeviceMemory memory = DeviceMemory.system();
    private final CudaStream stream = CudaStream.open(memory, DEVICE);

    private TwoProcesses() {}

    /// Runs the example; with a path as the argument, it is the second process.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments.length == 0) {
            Path folder = Files.createTempDirectory("two-processes");
            new TwoProcesses().export(folder.resolve("pool"));
            Files.delete(folder);
        } else {
            new TwoProcesses().importFrom(Path.of(arguments[0]));
        }
    }

    private void export(Path path) throws IOException, InterruptedException {
        try (ExportedPool pool = ExportedPool.builder(memory.driver(), DEVICE).serve(path);
                Allocator allocator = pool.allocator(memory);
                DeviceBuffer weights = DeviceBuffer.allocate(allocator, BYTES, stream)) {
            weights.fill((byte) 42);
            try (ExportedBuffer _ = pool.publish("weights", weights)) {
                int exitCode = secondProcess(path).waitFor();
                if (exitCode != 0) {
                    throw new IOException("the importer ended with exit code " + exitCode);
                }
            } // No process maps the buffer any more, and their work on it is complete.
            System.out.printf("exporter: the last byte is %d now%n", lastByte(weights));
        }
        stream.close();
    }

    private static Process secondProcess(Path path) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--class-path",
                        System.getProperty("java.class.path"),
                        TwoProcesses.class.getName(),
                        path.toString())
                .inheritIO()
                .start();
    }

    private void importFrom(Path path) {
        try (ImportedPool pool = ImportedPool.connect(memory.driver(), path);
                DeviceBuffer weights = pool.open("weights", stream)) {
            System.out.printf("importer: %d bytes, the last is %d%n", weights.byteSize(), lastByte(weights));
            weights.fill((byte) 43);
        } // Waits for the stream and notifies the exporter.
    }

    private static byte lastByte(DeviceBuffer buffer) {
        byte[] last = new byte[1];
        buffer.slice(BYTES - 1, 1).copyTo(MemorySegment.ofArray(last));
        return last[0];
    }
}
