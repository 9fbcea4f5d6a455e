package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What the log holds.
final class LoggingAllocatorTests extends AdaptorContract {
    @TempDir
    private Path folder;

    private Path file;
    private TraceLog log;

    @BeforeEach
    void openLog() {
        file = folder.resolve("log.csv");
        log = TraceLog.open(file);
    }

    @AfterEach
    void closeLog() {
        log.close();
    }

    @Override
    LoggingAllocator over(DeviceAllocator upstream) {
        return new LoggingAllocator(upstream, log);
    }

    /// A channel that an interrupted thread writes to closes itself, for all threads.
    @Test
    void anInterruptedThreadIsLoggedToo() throws IOException {
        LoggingAllocator logging = over(upstream);
        Thread.currentThread().interrupt();
        for (int i = 0; i < 4_000; i++) { // more than the log's buffer holds
            logging.free(logging.allocate(100, DEVICE, STREAM), 100, DEVICE, STREAM);
        }
        assertThat(Thread.interrupted()).isTrue();
        log.close();
        assertThat(log.failure()).isEmpty();
        assertThat(rows()).hasSize(8_000);
    }

    @Test
    void everyCallIsARow() throws IOException {
        LoggingAllocator logging = over(upstream);
        long address = logging.allocate(100, DEVICE, STREAM);
        log.streamWaits(DEVICE, 11, STREAM);
        log.used(address, DEVICE, 11);
        logging.free(address, 100, DEVICE, 11);
        upstream.failing(1);
        assertThatThrownBy(() -> logging.allocate(70, DEVICE, STREAM)).isInstanceOf(DeviceOutOfMemoryException.class);
        logging.streamClosing(DEVICE, 11);
        assertThat(log.rows()).isEqualTo(6);
        log.close();

        long thread = Thread.currentThread().threadId();
        assertThat(Files.readAllLines(file).getFirst()).isEqualTo("op,id,bytes,stream,device,thread,nanos");
        assertThat(rows())
                .containsExactly(
                        "a," + address + ",100,9,1," + thread,
                        "w,9,0,11,1," + thread,
                        "u," + address + ",0,11,1," + thread,
                        "f," + address + ",100,11,1," + thread,
                        "o,0,70,9,1," + thread,
                        "e,0,0,11,1," + thread);
        assertThat(log.failure()).isEmpty();
    }

    /// The rows without their times.
    private List<String> rows() throws IOException {
        return Files.readAllLines(file).stream()
                .skip(1)
                .map(row -> row.substring(0, row.lastIndexOf(',')))
                .toList();
    }

    /// With an address that comes back during its free the free stands before the second allocation.
    @Test
    void noIdIsAllocatedWhileItIsLive() throws IOException {
        anAddressMayComeBackBeforeItsFreeReturns();
        log.close();
        Set<String> live = new HashSet<>();
        for (String row : rows()) {
            String id = row.split(",")[1];
            assertThat(row.startsWith("a") ? live.add(id) : live.remove(id))
                    .as(row)
                    .isTrue();
        }
        assertThat(live).isEmpty();
    }

    @Test
    void timesOfOneThreadDoNotGoBack() throws IOException {
        LoggingAllocator logging = over(upstream);
        for (int i = 0; i < 10_000; i++) {
            logging.free(logging.allocate(100, DEVICE, STREAM), 100, DEVICE, STREAM);
        }
        log.close();
        long[] nanos = Files.readAllLines(file).stream()
                .skip(1)
                .mapToLong(row -> Long.parseLong(row.substring(row.lastIndexOf(',') + 1)))
                .toArray();
        assertThat(nanos).hasSize(20_000).isSorted();
    }

    @Test
    void aNameThatEndsInGzIsPacked() throws IOException {
        Path packed = folder.resolve("log.csv.gz");
        try (TraceLog other = TraceLog.open(packed)) {
            other.streamEnds(0, Long.MAX_VALUE);
        }
        try (GZIPInputStream in = new GZIPInputStream(Files.newInputStream(packed))) {
            assertThat(new String(in.readAllBytes(), StandardCharsets.US_ASCII))
                    .matches("op,.*\ne,0,0,9223372036854775807,0,\\d+,\\d+\n");
        }
    }

    @Test
    void itEndsAfterSoManyRowsAndSaysWhatIsMissing() throws IOException {
        Path brief = folder.resolve("brief.csv");
        try (TraceLog other = TraceLog.open(brief, 2)) {
            for (int i = 0; i < 5; i++) {
                other.streamEnds(0, i);
            }
            assertThat(other.rows()).isEqualTo(2);
            assertThat(other.droppedRows()).isEqualTo(3);
        }
        assertThat(Files.readAllLines(brief)).hasSize(3);
    }

    @Test
    void afterClosingNothingIsWrittenAndNothingThrown() throws IOException {
        LoggingAllocator logging = over(upstream);
        log.close();
        log.close();
        logging.allocate(100, DEVICE, STREAM);
        assertThat(rows()).isEmpty();
        assertThat(log.droppedRows()).isOne();
    }

    @Test
    void twoLogsNeverWriteOneFile() {
        assertThatThrownBy(() -> TraceLog.open(file))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("log.csv is being written by another log");
        log.close();
        TraceLog.open(file).close();
    }

    @Test
    void twoLogsMayWriteToNowhere() {
        try (TraceLog one = TraceLog.open(Path.of("/dev/null"));
                TraceLog other = TraceLog.open(Path.of("/dev/null"))) {
            assertThat(other.rows()).isEqualTo(one.rows());
        }
    }

    @Test
    void theLogIsFoundThroughTheAllocator() {
        assertThat(over(upstream).extension(TraceLog.class)).containsSame(log);
    }
}
