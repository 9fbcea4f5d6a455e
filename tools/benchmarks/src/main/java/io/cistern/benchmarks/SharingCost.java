package io.cistern.benchmarks;

import io.cistern.async.sharing.ExportedBuffer;
import io.cistern.async.sharing.ExportedPool;
import io.cistern.async.sharing.ImportedBuffer;
import io.cistern.async.sharing.ImportedPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.SharingException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// What it costs to share memory of a pool with another process: to connect, to map and let go, to hand a
/// buffer over and back, to copy out of it beside a copy of own memory; and how long an exporter takes to see
/// that an importer was killed in the middle of its work, and an importer that its exporter was. The bytes are
/// compared; a difference ends it with code 1, and so does a survivor that does not get on.
///
/// Arguments: `cuda:0` or `simulated`, rounds (100). The importer is this program in another process, of the
/// same Java. Prints a line of JSON for each figure.
public final class SharingCost {
    private static final int DEVICE = 0;
    private static final long MIB = 1L << 20;
    private static final String NAME = "buffer";
    private static final int COPIES = 20;

    private final CudaDriver driver;
    private final String device;
    private final int rounds;
    private final long stream;
    private final long byteSize;

    private SharingCost(String device, int rounds) {
        this.device = device;
        this.rounds = rounds;
        this.driver = DriverNamed.open(device);
        this.stream = driver.streams().create(DEVICE);
        // Simulated copies of shared memory are real ones of the host.
        this.byteSize = driver.simulated() ? 4 * MIB : 256 * MIB;
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws Exception {
        SharingCost cost = new SharingCost(arguments[0], arguments.length > 1 ? Integer.parseInt(arguments[1]) : 100);
        if (arguments.length > 2 && arguments[3].equals("export")) {
            cost.exportAndHold(Path.of(arguments[2]));
        } else if (arguments.length > 2) {
            cost.importFrom(Path.of(arguments[2]), arguments[3]);
        } else {
            cost.export();
        }
    }

    private void export() throws Exception {
        Path folder = Files.createTempDirectory("sharing");
        Path path = folder.resolve("pool");
        try (ExportedPool pool = ExportedPool.builder(driver, DEVICE)
                .patience(Duration.ofSeconds(30))
                .serve(path)) {
            long address = driver.pools().allocateFrom(DEVICE, pool.handle(), byteSize, stream);
            driver.copies().fillBytes(DEVICE, address, (byte) 1, byteSize, stream);
            ExportedBuffer buffer = pool.publish(NAME, address, byteSize, stream);
            process(path, "measure").waitFor();
            driver.streams().synchronize(DEVICE, stream);
            buffer.await();
            requireBytes(address, 2);
            seeAKill(path, buffer);
            driver.pools().free(DEVICE, address, stream);
            driver.streams().synchronize(DEVICE, stream);
        }
        seeAnExporterKilled(path);
        Files.deleteIfExists(path);
        Files.delete(folder);
    }

    private void seeAKill(Path path, ExportedBuffer buffer) throws Exception {
        Process killed = process(path, "hold");
        killed.inputReader(StandardCharsets.UTF_8).readLine();
        killed.destroyForcibly();
        long begin = System.nanoTime();
        buffer.await();
        buffer.close();
        print("killed importer seen", "micros", (System.nanoTime() - begin) / 1e3);
    }

    /// The importer is this process here.
    private void seeAnExporterKilled(Path path) throws Exception {
        Process killed = process(path, "export");
        killed.inputReader(StandardCharsets.UTF_8).readLine();
        try (ImportedPool pool = ImportedPool.connect(driver, path);
                ImportedBuffer buffer = pool.map(NAME, byteSize, stream)) {
            killed.outputWriter(StandardCharsets.UTF_8).append("hold\n").flush();
            killed.inputReader(StandardCharsets.UTF_8).readLine();
            Thread.ofPlatform().start(killed::destroyForcibly);
            long begin = System.nanoTime();
            try {
                buffer.await();
                throw new IllegalStateException("what a killed exporter was doing is done");
            } catch (SharingException lost) {
                print("killed exporter seen", "micros", (System.nanoTime() - begin) / 1e3);
            }
            driver.copies().fillBytes(DEVICE, buffer.address(), (byte) 3, byteSize, stream);
            requireBytes(buffer.address(), 3);
        }
    }

    /// Exports, and once told to, records what never ends.
    private void exportAndHold(Path path) throws Exception {
        ExportedPool pool = ExportedPool.builder(driver, DEVICE).serve(path);
        long address = driver.pools().allocateFrom(DEVICE, pool.handle(), byteSize, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, byteSize, stream);
        ExportedBuffer buffer = pool.publish(NAME, address, byteSize, stream);
        System.out.println("serving");
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
        hold();
        buffer.record(stream);
        System.out.println("holding");
        Thread.sleep(Duration.ofMinutes(1));
    }

    /// Gives the stream a kernel that does not end.
    private void hold() {
        MemorySegment flag = driver.memory().allocateHost(DEVICE, Integer.BYTES);
        flag.fill((byte) 0);
        MemoryKernels.load(driver, DEVICE).latch(flag.address(), stream);
    }

    private Process process(Path path, String role) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--class-path",
                System.getProperty("java.class.path"),
                SharingCost.class.getName(),
                device,
                Integer.toString(rounds),
                path.toString(),
                role));
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        if (role.equals("measure")) {
            builder.redirectOutput(ProcessBuilder.Redirect.INHERIT);
        }
        return builder.start();
    }

    private void importFrom(Path path, String role) throws InterruptedException {
        if (role.equals("hold")) {
            ImportedBuffer held = ImportedPool.connect(driver, path).map(NAME, byteSize, stream);
            hold();
            held.record(stream);
            System.out.println("holding");
            Thread.sleep(Duration.ofMinutes(1));
        }
        print(
                "connect and close",
                "micros",
                median(() -> ImportedPool.connect(driver, path).close()));
        try (ImportedPool pool = ImportedPool.connect(driver, path)) {
            print(
                    "map and close",
                    "micros",
                    median(() -> pool.map(NAME, byteSize, stream).close()));
            try (ImportedBuffer buffer = pool.map(NAME, byteSize, stream)) {
                requireBytes(buffer.address(), 1);
                print("await and record", "micros", median(() -> {
                    buffer.await();
                    buffer.record(stream);
                }));
                copies(buffer.address());
                driver.copies().fillBytes(DEVICE, buffer.address(), (byte) 2, byteSize, stream);
            }
        }
    }

    /// Copies out of shared memory, and out of own memory beside it.
    private void copies(long shared) {
        long own = driver.memory().allocate(DEVICE, byteSize);
        long target = driver.memory().allocate(DEVICE, byteSize);
        print("copy of own memory", "GB/s", gigabytesPerSecond(target, own));
        print("copy out of shared memory", "GB/s", gigabytesPerSecond(target, shared));
        print("copy into shared memory", "GB/s", gigabytesPerSecond(shared, target));
        requireBytes(target, 1);
        driver.memory().free(DEVICE, own);
        driver.memory().free(DEVICE, target);
    }

    private double gigabytesPerSecond(long target, long source) {
        return DriverNamed.gigabytesPerSecond(
                driver,
                DEVICE,
                stream,
                COPIES,
                byteSize,
                () -> driver.copies().onDevice(DEVICE, target, source, byteSize, stream));
    }

    private double median(Runnable action) {
        long[] nanos = new long[rounds];
        for (int i = 0; i < rounds; i++) {
            long begin = System.nanoTime();
            action.run();
            nanos[i] = System.nanoTime() - begin;
            driver.streams().synchronize(DEVICE, stream);
        }
        Arrays.sort(nanos);
        return nanos[rounds / 2] / 1e3;
    }

    private void requireBytes(long address, int value) {
        if (!DriverNamed.holdsOnly(driver, DEVICE, stream, address, byteSize, (byte) value)) {
            throw new IllegalStateException("the shared memory holds something else than " + value);
        }
    }

    private void print(String what, String unit, double value) {
        System.out.printf(
                Locale.ROOT,
                "{\"program\":\"sharing\",\"device\":\"%s\",\"case\":\"%s\",\"bytes\":%d,\"unit\":\"%s\",\"value\":%.2f}%n",
                device,
                what,
                byteSize,
                unit,
                value);
    }
}
