package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.adaptors.TraceLog;
import io.cistern.cli.CisternCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Records what a program does on two streams, with their order, and replays it through other allocators.
///
/// An existing program is recorded without a change by
/// `-Dcistern.allocator=logging:file=run.csv.gz,upstream=caching`. What Cistern's own streams and events do is in the
/// log; waits that other code makes are not, unless the program notes them in the [TraceLog].
public final class RecordAndReplay {
    private static final int DEVICE = 0;

    private RecordAndReplay() {}

    /// Prints what was recorded, and the table of the replay.
    public static void main(String[] arguments) throws IOException {
        Path trace = Files.createTempFile("recorded", ".csv.gz");
        trace.toFile().deleteOnExit();
        Allocator recording = Allocators.setCurrent("logging:file=\"" + trace + "\",upstream=caching");
        TraceLog log = recording.extension(TraceLog.class).orElseThrow();
        program(DeviceMemory.system());
        System.out.printf(
                "recorded %d rows of %d allocations%n",
                log.rows(), recording.statistics(DEVICE).allocations());
        recording.close(); // completes the file

        CisternCommand.main(
                new String[] {"replay", trace.toString(), "--allocator=caching", "--allocator=async", "--work=check"});
    }

    /// One stream fills blocks, another one reads them.
    private static void program(DeviceMemory memory) {
        try (CudaStream producer = CudaStream.open(memory, DEVICE);
                CudaStream consumer = CudaStream.open(memory, DEVICE);
                CudaEvent filled = CudaEvent.open(memory, DEVICE)) {
            for (int i = 1; i <= 100; i++) {
                long byteSize = i * 10_000L;
                long address = memory.allocate(byteSize, DEVICE, producer.handle());
                memory.driver().copies().fillBytes(DEVICE, address, (byte) i, byteSize, producer.handle());
                consumer.await(filled.record(producer));
                memory.recordUse(address, consumer.handle()); // the consumer's kernels go here
                memory.free(address, producer.handle());
            }
        }
    }
}
