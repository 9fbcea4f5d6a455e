package io.cistern.spring.scoring;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.jvm.JavaProgram;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;

/// The program of `docs/spring-boot.md` does what the page says.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class ScoringApplicationTests {
    private static final Path REPOSITORY = root();

    private static Path root() {
        Path at = Path.of("").toAbsolutePath();
        while (!Files.exists(at.resolve("bin/find-jdk"))) {
            at = at.getParent();
        }
        return at;
    }

    private static String page() throws IOException {
        return Files.readString(REPOSITORY.resolve("docs/spring-boot.md"));
    }

    @Test
    void thePageShowsThisController() throws IOException {
        String source = Files.readString(REPOSITORY.resolve(
                "integrations/spring-boot/src/test/java/io/cistern/spring/scoring/ScoringApplication.java"));
        assertThat(page())
                .contains(source.substring(source.indexOf("@RestController"), source.lastIndexOf("}"))
                        .strip());
    }

    @Test
    void theStatusOfARefusalTellsWhetherToRetry() throws Exception {
        try (var context = SpringApplication.run(
                ScoringApplication.class,
                "--server.port=0",
                "--cistern.driver=simulated",
                "--cistern.limit=8GiB",
                "--management.endpoints.web.exposure.include=health,metrics",
                "--management.endpoint.health.show-details=always",
                "--management.endpoint.health.group.liveness.include=livenessState,cistern",
                "--spring.main.banner-mode=off")) {
            ListAppender<ILoggingEvent> log = new ListAppender<>();
            log.start();
            ((Logger) LoggerFactory.getLogger(ScoringApplication.Scores.class)).addAppender(log);
            String root = "http://localhost:" + context.getEnvironment().getRequiredProperty("local.server.port");
            assertThat(get(root + "/score?mib=16").body()).isEqualTo("scored 16 MiB\n");

            assertAnswer(root + "/score?mib=100", 413, "request less\n");
            assertAnswer(root + "/score?mib=40", 413, "request less\n"); // its second buffer
            assertThat(get(root + "/score?mib=-1").statusCode()).isEqualTo(400);
            MemoryPool scores = context.getBean(MemoryPool.class);
            long others = scores.allocate(250L << 20, 0, 0);
            assertAnswer(root + "/score?mib=16", 503, "try again later\n");
            context.getBean(DeviceMemory.class).free(others, 0);
            assertThat(get(root + "/score?mib=16").statusCode()).isEqualTo(200);
            assertThat(refusals(root, "too_large")).contains("\"value\":1.0");
            assertThat(refusals(root, "limit")).contains("\"value\":2.0");
            assertThat(refusals(root, "memory")).contains("\"value\":0.0");
            assertThat(get(root + "/actuator/metrics/cistern.memory.limit?tag=pool:scores")
                            .body())
                    .contains("\"value\":" + (double) (256L << 20));
            assertThat(log.list).hasSize(3);
            assertThat(page()).contains(log.list.getFirst().getFormattedMessage());
            assertThat(get(root + "/actuator/health/liveness").body())
                    .contains("\"cistern\"", "\"livenessState\"", "\"status\":\"UP\"");
        }
    }

    @Test
    void aMissingDriverStopsTheStartWithItsReason() throws Exception {
        JavaProgram program = new JavaProgram(
                ScoringApplication.class.getName(),
                List.of("-cp", System.getProperty("java.class.path"), "-Dcistern.driver=cuda"),
                List.of("--cistern.cuda.library=/no/such/libcuda.so", "--spring.main.banner-mode=off"),
                Map.of());
        assertThat(program.run(1))
                .contains("APPLICATION FAILED TO START")
                .anyMatch(line -> line.startsWith("property cistern.driver: the driver cuda can't be used:")
                        && line.contains("/no/such/libcuda.so"))
                .noneMatch(line -> line.startsWith("\tat "));
    }

    private static String refusals(String root, String cause) throws IOException, InterruptedException {
        return get(root + "/actuator/metrics/cistern.out.of.memory?tag=pool:scores&tag=cause:" + cause)
                .body();
    }

    private static void assertAnswer(String address, int status, String text) throws IOException, InterruptedException {
        HttpResponse<String> answer = get(address);
        assertThat(answer.statusCode()).isEqualTo(status);
        assertThat(answer.body()).isEqualTo(text);
    }

    private static HttpResponse<String> get(String address) throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                    HttpRequest.newBuilder(URI.create(address)).build(), HttpResponse.BodyHandlers.ofString());
        }
    }
}
