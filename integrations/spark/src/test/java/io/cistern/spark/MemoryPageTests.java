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
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.jdk.javaapi.CollectionConverters;

/// Figures in Spark's user interface, its metric system and its event log.
final class MemoryPageTests {
    @TempDir
    private Path events;

    @Test
    void figuresAreInTheTabTheMetricsAndTheEventLog() throws Exception {
        Map<String, String> settings = Map.of(
                "spark.ui.enabled", "true",
                "spark.ui.port", "0",
                "spark.eventLog.enabled", "true",
                "spark.eventLog.compress", "false",
                "spark.eventLog.dir", events.toUri().toString());
        try (LocalSpark spark = new LocalSpark(settings)) {
            assertThat(leak(spark)).isEqualTo(1);
            Eventually.present(() -> ClusterFigures.ofProcess().leaks().stream().findFirst());
            Eventually.present(() -> ClusterFigures.ofProcess().alive().stream()
                    .filter(each -> each.tasks().leakedBlocks() == 1)
                    .findFirst());
            String page = get(spark.session().sparkContext().uiWebUrl().get() + "/gpu-memory/");
            assertThat(page)
                    .contains("GPU Memory", "Simulated NVIDIA H200 (simulated)", "Leaked, and freed", "1.0 MiB")
                    .contains("MemoryPageTests.java", "caching");
            assertThat(metrics()).contains("tasks.leakedBytes", "device.requestedBytes", "cluster.executors");
        }
        assertThat(eventLog())
                .contains("\"Event\":\"io.cistern.spark.CisternLeak\"", "\"byteSize\":1048576")
                .contains("\"Event\":\"io.cistern.spark.CisternTotal\"");
    }

    private static long leak(LocalSpark spark) {
        return spark.context()
                .parallelize(List.of(1), 1)
                .map(_ -> TaskMemory.current().memory().allocate(1 << 20, 0, 0))
                .count();
    }

    private static String get(String address) throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create(address)).build(), HttpResponse.BodyHandlers.ofString())
                    .body();
        }
    }

    /// Of the driver's part and of the executor's, which are one process here.
    private static List<String> metrics() {
        return CollectionConverters.asJava(
                        SparkEnv.get().metricsSystem().getSourcesByName("plugin." + CisternPlugin.class.getName()))
                .stream()
                .flatMap(source -> source.metricRegistry().getNames().stream())
                .toList();
    }

    private String eventLog() throws IOException {
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
