package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.adaptors.TraceLog;
import io.cistern.cli.CisternCommand;
import io.cistern.cuda.CudaDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Records what a program does on two streams, with their order, and replays it through other allocators.
///
/// An existing program is recorded without a change by
/// `-Dcistern.allocator=logging:file=run.csv.gz,upstream=caching`; what the log can't see, waits between streams and
/// uses of blocks on other streams, it notes itself, as here.
public final class RecordAndReplay {
    private static final int DEVICE = 0;

    private RecordAndReplay() {}

    /// Prints what was recorded, and the table of the replay.
    public static void main(String[] arguments) throws IOException {
        Path trace = Files.createTempFile("recorded", ".csv.gz");
        trace.toFile().deleteOnExit();
        Allocator recording = Allocators.setCurrent("logging:file=\"" + trace + "\",upstream=caching");
        TraceLog log = recording.extension(TraceLog.class).orElseThrow();
        program(DeviceMemory.system().driver(), log);
        System.out.printf(
                "recorded %d rows of %d allocations%n",
                log.rows(), recording.statistics(DEVICE).allocations());
        recording.close(); // completes the file

        CisternCommand.main(
                new String[] {"replay", trace.toString(), "--allocator=caching", "--allocator=async", "--work=check"});
    }

    /// One stream fills blocks, another one reads them.
    private static void program(CudaDriver driver, TraceLog log) {
        long producer = driver.streams().create(DEVICE);
        long consumer = driver.streams().create(DEVICE);
        long filled = driver.events().create(DEVICE);
        for (int i = 1; i <= 100; i++) {
            long byteSize = i * 10_000L;
            long address = Allocators.allocate(byteSize, DEVICE, producer);
            driver.copies().fillBytes(DEVICE, address, (byte) i, byteSize, producer);
            driver.events().record(DEVICE, filled, producer);
            driver.streams().await(DEVICE, consumer, filled);
            log.streamWaits(DEVICE, consumer, producer);
            log.used(address, DEVICE, consumer); // the consumer's kernels go here
            Allocators.free(address, consumer);
        }
        driver.events().destroy(DEVICE, filled);
    }
}
