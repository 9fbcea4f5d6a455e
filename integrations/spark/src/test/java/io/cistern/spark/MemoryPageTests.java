package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.history.FsHistoryProvider;
import org.apache.spark.deploy.history.HistoryServer;
import org.apache.spark.deploy.history.HistoryServer$;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

/// Figures in Spark's user interface, its metric system, its event log, and its history server: of an application
/// that leaked a block.
final class MemoryPageTests {
    @TempDir
    private static Path events;

    private static String application;
    private static ExecutorFigures figures;
    private static String page;
    private static List<String> metrics;

    @BeforeAll
    static void leakABlock() throws Exception {
        Map<String, String> settings = Map.of(
                "spark.ui.enabled", "true",
                "spark.ui.port", "0",
                "spark.eventLog.enabled", "true",
                "spark.eventLog.compress", "false",
                "spark.eventLog.dir", events.toUri().toString());
        try (LocalSpark spark = new LocalSpark(settings)) {
            assertThat(leak(spark)).isEqualTo(1);
            Eventually.present(() -> ClusterFigures.ofProcess().leaks().stream().findFirst());
            figures = Eventually.present(() -> ClusterFigures.ofProcess().alive().stream()
                    .filter(each -> each.tasks().leakedBlocks() == 1)
                    .findFirst());
            application = spark.session().sparkContext().applicationId();
            page = get(spark.session().sparkContext().uiWebUrl().get() + "/gpu-memory/");
            metrics = metricNames();
        }
    }

    private static long leak(LocalSpark spark) {
        return spark.context()
                .parallelize(List.of(1), 1)
                .map(_ -> TaskMemory.current().memory().allocate(1 << 20, 0, 0))
                .count();
    }

    @Test
    void theTabShowsDevicesAndLeaks() {
        assertThat(page)
                .contains("GPU Memory", "Simulated NVIDIA H200 (simulated)", "Leaked, and freed", "1.0 MiB")
                .contains("MemoryPageTests.java", "caching");
    }

    @Test
    void thePeakOutlivesTheTask() {
        assertThat(figures.device().requestedBytes()).isZero();
        assertThat(figures.device().requestedPeakBytes()).isEqualTo(1 << 20);
    }

    @Test
    void metricsHaveFiguresOfTheExecutorAndOfAll() {
        assertThat(metrics).contains("tasks.leakedBytes", "device.requestedBytes", "cluster.executors");
    }

    @Test
    void theEventLogHasLeaksSumsAndTheExecutor() throws IOException {
        assertThat(eventLog())
                .contains("\"Event\":\"io.cistern.spark.CisternLeak\"", "\"byteSize\":1048576")
                .contains("\"Event\":\"io.cistern.spark.CisternTotal\"")
                .contains("\"Event\":\"io.cistern.spark.CisternExecutor\"");
    }

    @ParameterizedTest(name = "kept on disk: {0}")
    @ValueSource(booleans = {false, true})
    void theHistoryServerShowsTheTab(boolean onDisk, @TempDir Path store) throws Exception {
        SparkConf conf = new SparkConf(false)
                .set("spark.history.fs.logDirectory", events.toUri().toString());
        if (onDisk) {
            conf.set("spark.history.store.path", store.toString());
        }
        FsHistoryProvider provider = new FsHistoryProvider(conf);
        HistoryServer server = new HistoryServer(conf, provider, HistoryServer$.MODULE$.createSecurityManager(conf), 0);
        try {
            server.bind();
            provider.start();
            String address = "http://localhost:" + server.boundPort() + "/history/" + application + "/gpu-memory/";
            String shown =
                    Eventually.present(() -> Optional.of(tried(address)).filter(each -> each.contains("GPU Memory")));
            assertThat(shown)
                    .contains("Simulated NVIDIA H200 (simulated)", "Executors that are gone (1)", "Leaks (1)")
                    .contains("MemoryPageTests.java", "caching");
        } finally {
            server.stop();
        }
    }

    private static String tried(String address) {
        try {
            return get(address);
        } catch (IOException | InterruptedException notYet) {
            return "";
        }
    }

    private static String get(String address) throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newBuilder()
                .followRedirects(HttpClient.Redirect.NORMAL)
                .build()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create(address)).build(), HttpResponse.BodyHandlers.ofString())
                    .body();
        }
    }

    /// Of the driver's part and of the executor's, which are one process here.
    private static List<String> metricNames() {
        return CollectionConverters.asJava(
                        SparkEnv.get().metricsSystem().getSourcesByName("plugin." + CisternPlugin.class.getName()))
                .stream()
                .flatMap(source -> source.metricRegistry().getNames().stream())
                .toList();
    }

    private static String eventLog() throws IOException {
        try (Stream<Path> files = Files.walk(events)) {
            return files.filter(Files::isRegularFile).map(MemoryPageTests::read).collect(Collectors.joining());
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
