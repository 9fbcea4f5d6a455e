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

/// Records a program's allocations on two streams, with their order, and replays them through other allocators.
///
/// `-Dcistern.allocator=logging:file=run.csv.gz,upstream=caching` records an existing program without a change.
/// The log contains the waits of Cistern's own streams and events; waits of other code are missing unless the
/// program notes them in the [TraceLog].
public final class RecordAndReplay {
    private static final int DEVICE = 0;

    private RecordAndReplay() {}

    /// Prints the number of recorded rows, and the table of the replay.
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

    /// Fills blocks on one stream and reads them on another.
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
