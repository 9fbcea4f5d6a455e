package io.cistern.cli.top;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.observability.MemoryFigures;
import java.io.ByteArrayOutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// Keys on a terminal that is none of the system's.
@Timeout(60)
final class TopScreenTests {
    private final ByteArrayOutputStream shown = new ByteArrayOutputStream();
    private final Program program = new Program();
    private int width = 200;

    @Test
    void keysSortReverseAndQuit() throws Exception {
        assertThat(shownAfter("q")).contains("reserved*", "process 7 trainer", "q quit");
        assertThat(shownAfter("<q")).contains("peak*");
        assertThat(shownAfter(">q")).contains("max free*");
        assertThat(shownAfter("\u001b[Cq")).contains("max free*");
        assertThat(shownAfter("\u001bODq")).contains("peak*");
    }

    @Test
    void aNarrowTerminalLeavesColumnsOutButNotTheOneThatSorts() throws Exception {
        width = 80;
        assertThat(shownAfter("q"))
                .contains("requested", "reserved*", "max free", "stranded", "hits %")
                .doesNotContain("frees/s", "peak");
        assertThat(shownAfter("<q")).contains("peak*").doesNotContain("frees/s");
    }

    @Test
    @ResourceLock(Resources.SYSTEM_PROPERTIES)
    void boldHeadingsTakeNoRoom() throws Exception {
        System.setProperty("picocli.ansi", "true");
        try {
            width = 80;
            assertThat(shownAfter("q")).contains("reserved*", "max free", "stranded", "hits %");
        } finally {
            System.clearProperty("picocli.ansi");
        }
    }

    @Test
    void keysTakeASnapshotAndShowWhoWaits() throws Exception {
        assertThat(shownAfter("sq")).contains("written: /tmp/snapshot-1");
        assertThat(program.snapshots).hasValue(1);
        assertThat(shownAfter("wq")).contains("worker-3  WAITING  io.cistern.DeviceMemory.allocate");
        assertThat(shownAfter("xq")).doesNotContain("worker-3");
    }

    @Test
    void theNextReadingComesByItself() throws Exception {
        try (PipedOutputStream keys = new PipedOutputStream();
                Terminal terminal = terminal(new PipedInputStream(keys))) {
            Thread screen = Thread.ofPlatform().start(() -> {
                try {
                    new TopScreen(terminal, program, Duration.ofMillis(20), Column.RESERVED).run();
                } catch (java.io.IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            });
            assertThat(program.thirdReading.await(30, TimeUnit.SECONDS)).isTrue();
            keys.write('q');
            keys.flush();
            screen.join();
        }
        assertThat(text()).contains("50");
    }

    private String shownAfter(String pressed) throws Exception {
        shown.reset();
        try (PipedOutputStream keys = new PipedOutputStream();
                Terminal terminal = terminal(new PipedInputStream(keys))) {
            keys.write(pressed.getBytes(StandardCharsets.US_ASCII));
            keys.flush();
            new TopScreen(terminal, program, Duration.ofMinutes(1), Column.RESERVED).run();
        }
        return text();
    }

    private Terminal terminal(PipedInputStream keys) throws Exception {
        Terminal terminal = TerminalBuilder.builder()
                .system(false)
                .type("dumb")
                .encoding(StandardCharsets.UTF_8)
                .streams(keys, shown)
                .build();
        terminal.setSize(new Size(width, 30));
        return terminal;
    }

    private String text() {
        return shown.toString(StandardCharsets.UTF_8);
    }

    /// Allocates 50 blocks a second.
    private static final class Program implements WatchedProgram {
        private final AtomicInteger snapshots = new AtomicInteger();
        private final CountDownLatch thirdReading = new CountDownLatch(3);

        @Override
        public String title() {
            return "process 7 trainer";
        }

        @Override
        public List<Reading> read() {
            thirdReading.countDown();
            long seconds = 3 - thirdReading.getCount();
            var figures = new MemoryFigures.OfAllocator(
                    1, "caching", "", true, 2, 50 * seconds, 40 * seconds, 1, 2, 0, 3, 4, 5, List.of());
            var device = new MemoryFigures.OfDevice(0, "GPU", 1 << 30, 1 << 20, List.of(figures));
            return List.of(new Reading("1", new MemoryFigures(seconds * 1_000_000_000, List.of(device))));
        }

        @Override
        public List<WaitingThread> waiting() {
            return List.of(new WaitingThread("worker-3", "WAITING", "io.cistern.DeviceMemory.allocate"));
        }

        @Override
        public String snapshot(Path folder) {
            return "written: /tmp/snapshot-" + snapshots.incrementAndGet();
        }

        @Override
        public void close() {}
    }
}
