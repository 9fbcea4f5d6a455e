package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What streams and events do is in the log of an allocator, without a word of the program.
class RecordedOrderTests {
    @TempDir
    private Path folder;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private DeviceMemory memory;
    private Path file;
    private Allocator recording;

    @BeforeEach
    void open() {
        memory = DeviceMemory.builder(gpu).catalog(catalog()).open();
        file = folder.resolve("run.csv");
        recording = memory.setCurrent("logging:file=\"" + file + "\",upstream=direct");
    }

    private static Catalog catalog() {
        return Catalog.of(
                ServiceLoader.load(AllocatorProvider.class).stream()
                        .map(ServiceLoader.Provider::get)
                        .toList(),
                List.of());
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void aWaitForAStreamIsARow() throws IOException {
        try (CudaStream first = CudaStream.open(memory, 1);
                CudaStream second = CudaStream.open(memory, 1)) {
            for (int i = 0; i < 50; i++) {
                second.await(first);
            }
            assertThat(waits()).hasSize(50).containsOnly("w," + first.handle() + ",0," + second.handle() + ",1");
        }
    }

    @Test
    void aWaitForAnEventIsARowWithTheStreamOfItsLastMark() throws IOException {
        try (CudaStream first = CudaStream.open(memory, 0);
                CudaStream second = CudaStream.open(memory, 0);
                CudaStream third = CudaStream.open(memory, 0);
                CudaEvent event = CudaEvent.open(memory, 0)) {
            third.await(event.record(first));
            third.await(event.record(second));
            assertThat(waits())
                    .containsExactly(
                            "w," + first.handle() + ",0," + third.handle() + ",0",
                            "w," + second.handle() + ",0," + third.handle() + ",0");
        }
    }

    /// A row has one device, and tells of streams that are known.
    @Test
    void aWaitForNothingOrAnotherDeviceIsNoRow() throws IOException {
        try (CudaStream first = CudaStream.open(memory, 0);
                CudaStream elsewhere = CudaStream.open(memory, 1);
                CudaEvent neverMarked = CudaEvent.open(memory, 0)) {
            first.await(neverMarked);
            elsewhere.await(first);
            assertThat(waits()).isEmpty();
        }
    }

    @Test
    void anUpstreamThatIsOpenItselfHearsOfAWaitOnce() throws IOException {
        Allocator around = memory.open(OpenOptions.around("statistics", recording, StatisticsAllocator::new));
        try (CudaStream first = CudaStream.open(memory, 0);
                CudaStream second = CudaStream.open(memory, 0)) {
            second.await(first);
            assertThat(waits()).hasSize(1);
        }
        around.close();
    }

    @Test
    void aRowHasTheDeviceAndTheThreadOfItsCall() throws Exception {
        long own = Thread.currentThread().threadId();
        long first = memory.allocate(100, 0, 0);
        long second = memory.allocate(200, 1, 0);
        Thread other = Thread.ofPlatform().start(() -> memory.free(second, 0));
        other.join();
        memory.free(first, 0);
        recording.extension(TraceLog.class).orElseThrow().close();

        assertThat(Files.readAllLines(file).stream().skip(1).map(row -> row.substring(0, row.lastIndexOf(','))))
                .containsExactly(
                        "a," + first + ",100,0,0," + own,
                        "a," + second + ",200,0,1," + own,
                        "f," + second + ",200,0,1," + other.threadId(),
                        "f," + first + ",100,0,0," + own);
    }

    private List<String> waits() throws IOException {
        recording.extension(TraceLog.class).orElseThrow().close();
        return Files.readAllLines(file).stream()
                .filter(row -> row.startsWith("w,"))
                .map(row -> row.substring(0, row.lastIndexOf(',', row.lastIndexOf(',') - 1)))
                .toList();
    }
}
