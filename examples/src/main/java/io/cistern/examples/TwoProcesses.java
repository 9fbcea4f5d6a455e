package io.cistern.examples;

import io.cistern.DeviceMemory;
import io.cistern.async.sharing.ExportedBuffer;
import io.cistern.async.sharing.ExportedPool;
import io.cistern.async.sharing.ImportedBuffer;
import io.cistern.async.sharing.ImportedPool;
import io.cistern.cuda.CudaDriver;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;

/// Shares device memory between two processes without a copy: one serves a pool and publishes a buffer by name;
/// the other maps the buffer, reads the contents, writes, and unmaps it.
///
/// Runs on the GPU, or on the simulated one if there is no GPU; on Linux.
public final class TwoProcesses {
    private static final int DEVICE = 0;
    private static final long BYTES = 1 << 20;

    private final CudaDriver driver = DeviceMemory.system().driver();
    private final long stream = driver.streams().create(DEVICE);

    private TwoProcesses() {}

    /// Runs the example; with a path as the argument, it is the second process.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments.length == 0) {
            new TwoProcesses().export(Files.createTempDirectory("two-processes").resolve("pool"));
        } else {
            new TwoProcesses().importFrom(Path.of(arguments[0]));
        }
    }

    private void export(Path path) throws IOException, InterruptedException {
        try (ExportedPool pool = ExportedPool.builder(driver, DEVICE).serve(path)) {
            long address = driver.pools().allocateFrom(DEVICE, pool.handle(), BYTES, stream);
            driver.copies().fillBytes(DEVICE, address, (byte) 42, BYTES, stream);
            try (ExportedBuffer _ = pool.publish("weights", address, BYTES, stream)) {
                int exitCode = secondProcess(path).waitFor();
                if (exitCode != 0) {
                    throw new IOException("the importer ended with exit code " + exitCode);
                }
            } // No process maps the buffer any more, and their work on it is complete.
            System.out.printf("exporter: the last byte is %d now%n", lastByte(address));
            driver.pools().free(DEVICE, address, stream);
        }
        driver.streams().destroy(DEVICE, stream);
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
        try (ImportedPool pool = ImportedPool.connect(driver, path);
                ImportedBuffer weights = pool.map("weights", BYTES, stream)) {
            System.out.printf("importer: %d bytes, the last is %d%n", weights.byteSize(), lastByte(weights.address()));
            driver.copies().fillBytes(DEVICE, weights.address(), (byte) 43, BYTES, stream);
        } // Waits for the stream and notifies the exporter.
    }

    private byte lastByte(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BYTES);
            driver.copies().toHost(DEVICE, bytes, address, BYTES, stream);
            driver.streams().synchronize(DEVICE, stream);
            return bytes.get(ValueLayout.JAVA_BYTE, BYTES - 1);
        }
    }
}
