package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import io.cistern.jvm.RunningProgram;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// An exporter and an importer in two processes, either of which may be killed.
@EnabledOnOs(OS.LINUX)
class TwoProcessesTests {
    @TempDir
    private Path folder;

    private RunningProgram exporter;
    private RunningProgram importer;

    @BeforeEach
    void start() throws Exception {
        exporter = process();
        importer = process();
        ask(exporter, "serve");
        ask(exporter, "publish 1");
    }

    private RunningProgram process() throws IOException {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "--class-path",
                System.getProperty("java.class.path"));
        String path = folder.resolve("pool").toString();
        return new JavaProgram(SharingProgram.class.getName(), options, List.of(path), Map.of()).start();
    }

    @AfterEach
    void end() {
        exporter.close();
        importer.close();
    }

    private static String ask(RunningProgram process, String question) throws Exception {
        String kind = question.split(" ", -1)[0];
        return process.say(question).expect(kind + " ").substring(kind.length() + 1);
    }

    @Test
    void memoryIsExchangedAndAllIsClosed() throws Exception {
        ask(importer, "connect SOCKET");
        ask(importer, "map");
        assertThat(ask(importer, "content")).isEqualTo("1");
        ask(importer, "fill 2");
        ask(importer, "close-buffer");
        ask(importer, "close");
        assertThat(ask(exporter, "close-buffer")).isEqualTo("done");
        assertThat(ask(exporter, "content")).isEqualTo("2");
        ask(exporter, "close");
    }

    @Test
    void anImporterThatIsKilledIsWaitedForAndForgotten() throws Exception {
        ask(importer, "connect SOCKET");
        ask(importer, "map");
        assertThat(ask(exporter, "importers")).isEqualTo("1");
        importer.kill();
        assertThat(ask(exporter, "close-buffer")).isEqualTo("done");
        assertThat(ask(exporter, "importers")).isEqualTo("0");
        ask(exporter, "close");
    }

    @Test
    void anExporterThatIsKilledIsNoticedAndItsPathServesTheNext() throws Exception {
        ask(importer, "connect SOCKET");
        ask(importer, "map");
        exporter.kill();
        assertThat(ask(importer, "content")).isEqualTo("1");
        assertThat(ask(importer, "await")).isEqualTo("PEER_LOST");
        assertThat(ask(importer, "close-buffer")).isEqualTo("done");
        assertThat(ask(importer, "close")).isEqualTo("done");
        assertThat(ask(importer, "connect SOCKET")).isEqualTo("UNREACHABLE");
        try (RunningProgram next = process()) {
            ask(next, "serve");
            ask(next, "publish 3");
            ask(importer, "connect SOCKET");
            ask(importer, "map");
            assertThat(ask(importer, "content")).isEqualTo("3");
        }
    }

    /// Its end could not be noticed if it loses its connection.
    @Test
    void anImporterThatCannotBeWatchedIsNotAdmitted() throws Exception {
        ask(importer, "connect SOCKET"); // loads the exporter's classes
        ask(importer, "close");
        ask(exporter, "leave-descriptors 1"); // for the connection
        assertThat(ask(importer, "connect SOCKET")).isEqualTo("PEER_LOST");
    }

    /// Between processes of which neither started the other, some systems don't allow it.
    @Test
    void thePoolIsFetchedOrThatIsRefusedWithTheReason() throws Exception {
        assertThat(ask(importer, "connect PIDFD")).isIn("done", "NOT_SUPPORTED");
    }
}
