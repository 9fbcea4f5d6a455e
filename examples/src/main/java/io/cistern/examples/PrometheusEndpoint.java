package io.cistern.examples;

import com.sun.net.httpserver.HttpServer;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.micrometer.DeviceMemoryMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/// Serves the meters of device memory to Prometheus at `http://localhost:9464/metrics`.
/// `src/main/grafana/device-memory.json` is a dashboard for Grafana over them.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-micrometer`,
/// `io.micrometer:micrometer-registry-prometheus`.
public final class PrometheusEndpoint {
    private static final int DEVICE = 0;
    private static final int PORT = 9464;

    private PrometheusEndpoint() {}

    /// Serves until it is stopped. With the argument `once`, it serves on any free port, prints some
    /// meters and ends.
    public static void main(String[] arguments) throws Exception {
        boolean once = arguments.length > 0 && arguments[0].equals("once");
        DeviceMemory memory = DeviceMemory.system();
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                DeviceBuffer _ = DeviceBuffer.allocate(64 << 20, stream);
                DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            HttpServer server = serve(registry, once ? 0 : PORT);
            URI page = URI.create("http://localhost:" + server.getAddress().getPort() + "/metrics");
            if (once) {
                printSome(page);
                server.stop(0);
            } else {
                System.out.println("serving " + page);
                Thread.currentThread().join();
            }
        }
    }

    private static HttpServer serve(PrometheusMeterRegistry registry, int port) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/metrics", exchange -> {
            byte[] text = registry.scrape().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
            exchange.sendResponseHeaders(200, text.length);
            try (var body = exchange.getResponseBody()) {
                body.write(text);
            }
        });
        server.start();
        return server;
    }

    private static void printSome(URI page) throws IOException {
        try (var body = page.toURL().openStream()) {
            new String(body.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line ->
                            line.startsWith("cistern_memory_requested_bytes") || line.startsWith("cistern_blocks_live"))
                    .forEach(System.out::println);
        }
    }
}
