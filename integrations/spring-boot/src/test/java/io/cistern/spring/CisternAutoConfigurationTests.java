package io.cistern.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.micrometer.DeviceMemoryMetrics;
import io.cistern.simulated.SimulatedGpu;
import io.micrometer.core.instrument.MeterRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/// Device memory in an application of Spring Boot.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class CisternAutoConfigurationTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final List<String> before = new ArrayList<>(System.getProperties().stringPropertyNames());

    @AfterEach
    void forgetProperties() {
        System.getProperties().stringPropertyNames().stream()
                .filter(key -> key.startsWith("cistern.") && !before.contains(key))
                .forEach(System::clearProperty);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Plain {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class WithDriver {
        @Bean
        CudaDriver driver() {
            return SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
        }
    }

    private static ConfigurableApplicationContext run(Class<?> program, WebApplicationType web, String... properties) {
        SpringApplication application = new SpringApplication(program);
        application.setWebApplicationType(web);
        return application.run(Stream.concat(Stream.of("spring.main.banner-mode=off"), Stream.of(properties))
                .map(property -> "--" + property)
                .toArray(String[]::new));
    }

    @Test
    void withoutADriverItIsTheProcesssOwnMemory() {
        try (var context = run(Plain.class, WebApplicationType.NONE, "cistern.driver=simulated")) {
            assertThat(context.getBean(DeviceMemory.class)).isSameAs(DeviceMemory.system());
        }
        assertThat(DeviceMemory.system().current(DEVICE).isClosed()).isFalse();
    }

    @Test
    void onTheApplicationsDriverItIsItsOwnWithItsSettings() {
        DeviceMemory memory;
        try (var context =
                run(WithDriver.class, WebApplicationType.NONE, "cistern.allocator=direct", "cistern.limit=1MiB")) {
            memory = context.getBean(DeviceMemory.class);
            assertThat(memory.driver()).isSameAs(context.getBean(CudaDriver.class));
            assertThat(memory.current(DEVICE).name()).isEqualTo("direct");
            assertThat(memory.limit(DEVICE).orElseThrow().byteSize()).isEqualTo(MIB);
        }
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void itsMetersAreInTheRegistry() {
        try (var context = run(WithDriver.class, WebApplicationType.NONE, "cistern.metrics.slow-allocations=0ms")) {
            DeviceMemory memory = context.getBean(DeviceMemory.class);
            long stream = memory.driver().streams().create(DEVICE);
            long address = memory.allocate(3 * MIB, DEVICE, stream);
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            assertThat(registry.get("cistern.allocators").gauge().value()).isOne();
            assertThat(registry.get("cistern.memory.requested")
                            .tag("device", "0")
                            .gauge()
                            .value())
                    .isEqualTo(3.0 * MIB);
            assertThat(registry.get("cistern.allocation.slow").timer().count()).isOne();
            memory.free(address, stream);
            assertThat(context.getBeansOfType(DeviceMemoryMetrics.class)).hasSize(1);
        }
    }

    @Test
    void itsHealthIsThatOfTheDriver() {
        try (var context = run(WithDriver.class, WebApplicationType.NONE)) {
            var health = context.getBean("cisternHealthIndicator", HealthIndicator.class)
                    .health();
            assertThat(health).isNotNull();
            assertThat(health.getStatus()).isEqualTo(Status.UP);
            assertThat(health.getDetails()).containsKeys("driver", "device0");
        }
        try (var context = run(WithDriver.class, WebApplicationType.NONE, "management.health.cistern.enabled=false")) {
            assertThat(context.containsBean("cisternHealthIndicator")).isFalse();
        }
    }

    @Test
    void actuatorServesMetersAndHealthOverHttp() throws Exception {
        try (var context = run(
                WithDriver.class,
                WebApplicationType.SERVLET,
                "server.port=0",
                "management.endpoints.web.exposure.include=health,metrics",
                "management.endpoint.health.show-details=always")) {
            int port = Integer.parseInt(context.getEnvironment().getRequiredProperty("local.server.port"));
            context.getBean(DeviceMemory.class).current(DEVICE);
            assertThat(get(port, "metrics/cistern.allocators")).contains("\"value\":1");
            assertThat(get(port, "metrics/cistern.memory.requested")).contains("\"baseUnit\":\"bytes\"");
            assertThat(get(port, "health")).contains("\"cistern\"", "\"requestedBytes\":0");
        }
    }

    private static String get(int port, String endpoint) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/actuator/" + endpoint))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
        }
    }
}
