package io.cistern.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.jvm.Cycles;
import io.cistern.jvm.JavaProgram;
import io.cistern.jvm.LogOf;
import io.cistern.micrometer.DeviceMemoryMetrics;
import io.cistern.simulated.SimulatedGpu;
import io.micrometer.core.instrument.MeterRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/// Device memory in an application of Spring Boot.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class CisternAutoConfigurationTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    @RegisterExtension
    private final LogOf log = new LogOf(CisternAutoConfiguration.class.getName());

    @RegisterExtension
    private final LogOf ofMemory = new LogOf(DeviceMemory.class.getName());

    private final List<String> before = settings();

    private static List<String> settings() {
        return System.getProperties().stringPropertyNames().stream()
                .filter(key -> key.startsWith("cistern."))
                .sorted()
                .toList();
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
            assertThat(memory.limits().device(DEVICE).byteSize()).isEqualTo(MIB);
        }
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void anAllocatorThatCanNotBeOpenedStopsTheStart() {
        assertThatThrownBy(() -> run(WithDriver.class, WebApplicationType.NONE, "cistern.allocator=asnyc"))
                .hasStackTraceContaining("no allocator is named 'asnyc'");
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
            assertThat(health.getDetails()).containsOnlyKeys("driver", "device0");
        }
        try (var context = run(WithDriver.class, WebApplicationType.NONE, "management.health.cistern.enabled=false")) {
            assertThat(context.containsBean("cisternHealthIndicator")).isFalse();
        }
    }

    @Test
    void itsHealthNamesTheSitesThatHoldMemoryIfTheyAreRecorded() throws Exception {
        try (var context = run(WithDriver.class, WebApplicationType.NONE, "cistern.leaks=sites")) {
            DeviceMemory memory = context.getBean(DeviceMemory.class);
            memory.allocate(12_345, DEVICE, 0);
            DeviceBuffer.allocate(memory, 4321, DEVICE, 0);
            for (int tries = 0; tries < 2000 && detail(context, "droppedBytes").equals(0L); tries++) {
                System.gc();
                Thread.sleep(5);
            }
            assertThat(detail(context, "droppedBytes")).isEqualTo(4321L);
            assertThat(detail(context, "liveBytesBySite"))
                    .asInstanceOf(InstanceOfAssertFactories.map(String.class, Long.class))
                    .hasSize(2)
                    .containsValue(12_345L)
                    .allSatisfy((site, _) -> assertThat(site).contains("itsHealthNamesTheSites"));
        }
    }

    private static Object detail(ApplicationContext context, String name) {
        return context.getBean("cisternHealthIndicator", HealthIndicator.class)
                .health()
                .getDetails()
                .get(name);
    }

    @Test
    void actuatorServesMetersAndHealthOverHttp() throws Exception {
        try (var context = run(
                WithDriver.class,
                WebApplicationType.SERVLET,
                "server.port=0",
                "management.endpoints.web.exposure.include=health,metrics",
                "management.endpoint.health.show-details=always",
                "cistern.leaks=sites")) {
            int port = Integer.parseInt(context.getEnvironment().getRequiredProperty("local.server.port"));
            context.getBean(DeviceMemory.class).current(DEVICE);
            assertThat(get(port, "metrics/cistern.allocators")).contains("\"value\":1");
            assertThat(get(port, "metrics/cistern.memory.requested")).contains("\"baseUnit\":\"bytes\"");
            assertThat(get(port, "health"))
                    .contains(
                            "\"cistern\"",
                            "\"requestedBytes\":0",
                            "},\"liveBytesBySite\":{},\"droppedBytes\":0},\"status\":\"UP\"}");
            assertThat(get(port, "metrics/cistern.memory.dropped")).contains("\"value\":0");
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

    /// Starts faster than an application does.
    private static AnnotationConfigApplicationContext start(Map<String, Object> properties) {
        return start(properties, CisternAutoConfigurationTests.class.getClassLoader());
    }

    private static AnnotationConfigApplicationContext start(Map<String, Object> properties, ClassLoader loader) {
        return start(Driver.class, properties, loader);
    }

    private static AnnotationConfigApplicationContext start(Class<?> program, Map<String, Object> properties) {
        return start(program, properties, CisternAutoConfigurationTests.class.getClassLoader());
    }

    private static AnnotationConfigApplicationContext start(
            Class<?> program, Map<String, Object> properties, ClassLoader loader) {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        context.setClassLoader(loader);
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("test", properties));
        context.register(program, CisternAutoConfiguration.class);
        context.refresh();
        return context;
    }

    @Configuration(proxyBeanMethods = false)
    static class Driver {
        @Bean(destroyMethod = "close")
        CudaDriver driver() {
            return SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
        }
    }

    private static long limitOf(ApplicationContext context) {
        return context.getBean(DeviceMemory.class).limits().device(DEVICE).byteSize();
    }

    @Test
    void settingsEndWithTheirContext() {
        try (var first = start(Map.of("cistern.limit", "8MiB", "cistern.leaks", "all"))) {
            assertThat(limitOf(first)).isEqualTo(8 * MIB);
        }
        try (var second = start(Map.of("cistern.limit", "4MiB"))) {
            assertThat(limitOf(second)).isEqualTo(4 * MIB);
            assertThat(second.getEnvironment().getProperty("cistern.leaks")).isNull();
        }
        try (var third = start(Map.of())) {
            assertThat(third.getBean(DeviceMemory.class).limits().device(DEVICE).isSet())
                    .isFalse();
        }
        assertThat(settings()).isEqualTo(before);
    }

    @Test
    void ofContextsThatAreOpenEachHasItsOwnSettings() {
        try (var first = start(Map.of("cistern.limit", "8MiB", "cistern.check", "checked"))) {
            try (var second = start(Map.of("cistern.limit", "4MiB"))) {
                assertThat(limitOf(first)).isEqualTo(8 * MIB);
                assertThat(limitOf(second)).isEqualTo(4 * MIB);
                assertThat(System.getProperty("cistern.check")).isNull();
            }
            assertThat(System.getProperty("cistern.check")).isEqualTo("checked");
            assertThat(System.getProperty("cistern.limit")).isEqualTo("8MiB");
        }
        assertThat(settings()).isEqualTo(before);
    }

    @Configuration(proxyBeanMethods = false)
    static class WithLazyMemory {
        @Bean(destroyMethod = "close")
        @Primary
        DeviceMemory memory() {
            return new WithMemory().memory();
        }

        @Bean(destroyMethod = "close")
        @Lazy
        DeviceMemory later() {
            return new WithMemory().memory();
        }
    }

    @Test
    void aLazyBeanFollowsTheSettingsOfItsOwnContext() {
        try (var first = start(WithLazyMemory.class, Map.of("cistern.limit", "8MiB"));
                var second = start(Map.of("cistern.limit", "4MiB"))) {
            assertThat(limitOf(second)).isEqualTo(4 * MIB);
            DeviceMemory later = first.getBean("later", DeviceMemory.class);
            assertThat(later.limits().device(DEVICE).byteSize()).isEqualTo(8 * MIB);
            assertThat(log.messages()).noneMatch(message -> message.contains("was opened before"));
        }
        assertThat(settings()).isEqualTo(before);
    }

    @Test
    void contextsThatStartAtTheSameTimeHaveTheirOwnSettings() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<Long>> limits = LongStream.rangeClosed(1, 400)
                    .mapToObj(kib -> threads.submit(() -> {
                        try (var context = start(Map.of("cistern.limit", kib + "KiB"))) {
                            return limitOf(context);
                        }
                    }))
                    .toList();
            for (int kib = 1; kib <= limits.size(); kib++) {
                assertThat(limits.get(kib - 1).get()).isEqualTo(1024L * kib);
            }
        }
        assertThat(settings()).isEqualTo(before);
    }

    /// Arguments of the command line come before system properties, application.properties after them.
    @Test
    void springsOrderDecidesBesideASystemProperty() {
        System.setProperty("cistern.limit", "16MiB");
        try {
            try (var arguments = start(Map.of("cistern.limit", "8MiB"))) {
                assertThat(limitOf(arguments)).isEqualTo(8 * MIB);
            }
            assertThat(System.getProperty("cistern.limit")).isEqualTo("16MiB");
            try (var file = new AnnotationConfigApplicationContext()) {
                file.getEnvironment()
                        .getPropertySources()
                        .addLast(new MapPropertySource("file", Map.of("cistern.limit", "8MiB")));
                file.register(Driver.class, CisternAutoConfiguration.class);
                file.refresh();
                assertThat(limitOf(file)).isEqualTo(16 * MIB);
            }
            assertThat(System.getProperty("cistern.limit")).isEqualTo("16MiB");
        } finally {
            System.clearProperty("cistern.limit");
        }
    }

    @Test
    void aBlankArgumentCountsAsNotSet() {
        try (var context = new AnnotationConfigApplicationContext()) {
            var sources = context.getEnvironment().getPropertySources();
            sources.addFirst(new MapPropertySource("arguments", Map.of("cistern.limit", " ")));
            sources.addLast(new MapPropertySource("file", Map.of("cistern.limit", "${mib}MiB", "mib", "8")));
            context.register(Driver.class, CisternAutoConfiguration.class);
            context.refresh();
            assertThat(limitOf(context)).isEqualTo(8 * MIB);
        }
    }

    @Test
    void noneLiftsALimitOfTheFile() {
        try (var context = new AnnotationConfigApplicationContext()) {
            var sources = context.getEnvironment().getPropertySources();
            sources.addFirst(new MapPropertySource("profile", Map.of("cistern.limit", "none")));
            sources.addLast(new MapPropertySource("file", Map.of("cistern.limit", "8MiB")));
            context.register(Driver.class, CisternAutoConfiguration.class);
            context.refresh();
            assertThat(context.getBean(DeviceMemory.class)
                            .limits()
                            .device(DEVICE)
                            .isSet())
                    .isFalse();
        }
    }

    /// As `off` in YAML.
    @Test
    void aLevelThatIsFalseIsOff() {
        try (var context = start(Map.of("cistern.leaks", false, "cistern.check", false))) {
            assertThat(context.getBean(DeviceMemory.class).moduleSupport().leakLevel())
                    .isEqualTo(LeakLevel.OFF);
        }
    }

    /// A program that ends while it still uses a block, which it frees if it has no arguments.
    static final class Ending {
        public static void main(String[] arguments) {
            ConfigurableApplicationContext context =
                    CisternAutoConfigurationTests.run(WithDriver.class, WebApplicationType.NONE, "cistern.leaks=sites");
            DeviceMemory memory = context.getBean(DeviceMemory.class);
            long block = memory.allocate(12_345, DEVICE, 0);
            context.addApplicationListener(event -> {
                if (event instanceof ContextClosedEvent && arguments.length == 0) {
                    LockSupport.parkNanos(500_000_000);
                    memory.free(block, 0);
                }
            });
            System.exit(0);
        }
    }

    @Test
    void whatAContextFreesWhenItClosesIsNoLeak() throws Exception {
        assertThat(endOf(List.of())).doesNotContain("live block");
        assertThat(endOf(List.of("leak"))).contains("the process ends: 1 live block of 12345 bytes");
    }

    private static String endOf(List<String> arguments) throws Exception {
        List<String> options =
                List.of("--enable-native-access=ALL-UNNAMED", "--class-path", System.getProperty("java.class.path"));
        return String.join("\n", new JavaProgram(Ending.class.getName(), options, arguments, Map.of()).run());
    }

    @Test
    void aContextThatFailsLeavesNoSetting() {
        assertThatThrownBy(() -> start(Map.of("cistern.limit", "much"))).hasStackTraceContaining("much");
        assertThat(settings()).isEqualTo(before);
    }

    /// Each with its place, and none of them a second time in the log.
    @Test
    void allWrongSettingsAreToldAtOnce() {
        System.setProperty("cistern.check", "chekced");
        try {
            Throwable failure = catchThrowable(() -> run(
                    WithDriver.class,
                    WebApplicationType.NONE,
                    "spring.config.location=classpath:/wrong.properties",
                    "cistern.limt=1MiB",
                    "cistern.leaks=maybe",
                    "cistern.scopes.report=maybe",
                    "cistern.metrics.slow-allocations=fast"));
            assertThat(new WrongSettingAnalyzer()
                            .analyze(failure)
                            .getDescription()
                            .lines())
                    .satisfiesExactly(
                            line -> assertThat(line)
                                    .startsWith("cistern.limit from class path resource [wrong.properties] - 1:15:"
                                            + " '8GB' could mean"),
                            line -> assertThat(line)
                                    .startsWith("cistern.allocator from class path resource [wrong.properties] - 2:19:"
                                            + " no allocator is named 'asnyc'"),
                            line -> assertThat(line)
                                    .startsWith("cistern.metrics.slow-allocations from property source"
                                            + " \"commandLineArgs\": 'fast' is not a duration"),
                            line -> assertThat(line)
                                    .startsWith("cistern.limt from property source \"commandLineArgs\": there is no"
                                            + " setting 'cistern.limt'"),
                            line -> assertThat(line)
                                    .startsWith(
                                            "cistern.leaks from property source \"commandLineArgs\": 'maybe' is not"),
                            line -> assertThat(line).startsWith("property cistern.check: 'chekced' is not"),
                            line -> assertThat(line).startsWith("cistern.scopes.report from property source"));
            assertThat(ofMemory.messages()).isEmpty();
        } finally {
            System.clearProperty("cistern.check");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"leaks", "check", "hazards", "scopes.report", "copies.report", "copies.direct"})
    void aSingleWrongWordStopsTheStart(String key) {
        assertThatThrownBy(() -> start(Map.of("cistern." + key, "maybe")))
                .hasRootCauseMessage(
                        "cistern." + key + " from property source \"test\": 'maybe' is not one of " + legal(key));
    }

    private static String legal(String key) {
        return switch (key) {
            case "leaks" -> "off, sampled, sites, all";
            case "check" -> "off, checked, paranoid, streams";
            case "hazards" -> "warning, throw, list";
            default -> "true, false";
        };
    }

    @Test
    void anUnknownKeyOfItsMetersStopsTheStart() {
        assertThatThrownBy(() -> start(Map.of("cistern.metrics.slow-alocations", "1ms")))
                .hasStackTraceContaining("there is no setting 'cistern.metrics.slow-alocations'; known:"
                        + " cistern.metrics.slow-allocations");
        for (String spelling : List.of("slowAllocations", "slow_allocations", "SLOW.ALLOCATIONS")) {
            start(Map.of("cistern.metrics." + spelling, "1ms")).close();
        }
        assertThat(settings()).isEqualTo(before);
    }

    @Test
    void aWrongDurationIsAWrongSetting() {
        for (String wrong : List.of("fast", "-1ms")) {
            Throwable failure = catchThrowable(
                    () -> start(Map.of(ContextSettings.SLOW_ALLOCATIONS, wrong, "cistern.limt", "8MiB")));
            assertThat(new WrongSettingAnalyzer().analyze(failure).getDescription())
                    .startsWith("cistern.metrics.slow-allocations from property source \"test\": '" + wrong
                            + "' is not a duration of 0 or more, such as 1ms\n")
                    .contains("there is no setting 'cistern.limt'");
        }
        assertThat(settings()).isEqualTo(before);
    }

    @Test
    void closedContextsLeaveNothing() throws Exception {
        Cycles.assertNothingStays(200, () -> {
            try (var context = start(Map.of("cistern.limit", "8MiB"))) {
                DeviceMemory memory = context.getBean(DeviceMemory.class);
                memory.free(memory.allocate(MIB, DEVICE, 0), 0);
            }
        });
    }

    @Test
    void theLogNamesTheSettingsThatComeTooLateForTheProcesssMemory() {
        Map<String, String> opened = DeviceMemory.system().moduleSupport().settings();
        String[] same = opened.entrySet().stream().map(Object::toString).toArray(String[]::new);
        try (var _ = run(Plain.class, WebApplicationType.NONE, same)) {
            assertThat(log.messages()).isEmpty();
        }
        String[] one =
                Stream.concat(Stream.of(same), Stream.of("cistern.limit=7MiB")).toArray(String[]::new);
        try (var _ = run(Plain.class, WebApplicationType.NONE, one)) {
            assertThat(log.messages())
                    .containsExactly("the process's own device memory was opened before, with other settings, and keeps"
                            + " them: cistern.limit is not set, here 7MiB. A CudaDriver bean gives the application"
                            + " device memory of its own");
        }
    }

    @Test
    void wrongSettingsStopTheStartEvenIfTheProcesssMemoryIsOpen() {
        DeviceMemory.system();
        assertThat(descriptionOf(Plain.class, "cistern.leeks=1", "cistern.limit=8GB", "cistern.driver=opencl"))
                .contains("there is no setting 'cistern.leeks'", "'8GB' could mean", "cistern.driver from");
        assertThat(settings()).isEqualTo(before);
    }

    private static String descriptionOf(Class<?> program, String... properties) {
        Throwable failure = catchThrowable(
                () -> run(program, WebApplicationType.NONE, properties).close());
        assertThat(failure).isNotNull();
        return new WrongSettingAnalyzer().analyze(failure).getDescription();
    }

    @Test
    void aMissingDriverIsToldWithAllOtherProblems() {
        String[] wrong = {
            "cistern.driver=opencl",
            "cistern.leeks=1",
            "cistern.allocator=asnyc",
            ContextSettings.SLOW_ALLOCATIONS + "=abc"
        };
        for (Class<?> program : List.of(WithDriver.class, Plain.class)) {
            assertThat(descriptionOf(program, wrong))
                    .contains("cistern.driver from", "opencl", "'cistern.leeks'", "'asnyc'", "'abc' is not a duration");
        }
    }

    /// In a process of its own, which has no CUDA library and has not opened its device memory.
    static final class WithoutCuda {
        public static void main(String[] arguments) {
            System.out.println(descriptionOf(
                    Plain.class,
                    "cistern.driver=cuda",
                    "cistern.cuda.library=/nowhere/libcuda.so",
                    "cistern.leeks=1",
                    "cistern.allocator=asnyc"));
            System.exit(0);
        }
    }

    @Test
    void aDriverThatCanNotBeLoadedIsToldWithAllOtherProblems() throws Exception {
        List<String> options =
                List.of("--enable-native-access=ALL-UNNAMED", "--class-path", System.getProperty("java.class.path"));
        assertThat(String.join("\n", new JavaProgram(WithoutCuda.class.getName(), options, List.of(), Map.of()).run()))
                .contains("the driver cuda can't be used", "'cistern.leeks'", "'asnyc'");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class WithMemory {
        @Bean(destroyMethod = "close")
        DeviceMemory memory() {
            return DeviceMemory.builder(SimulatedGpu.builder().devices(1).build())
                    .open();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class WithFormerMemory {
        static final DeviceMemory FORMER =
                DeviceMemory.builder(SimulatedGpu.builder().devices(1).build()).open();

        @Bean(destroyMethod = "")
        DeviceMemory memory() {
            return FORMER;
        }
    }

    @Test
    void aMemoryOfTheApplicationsOwnFollowsTheSettings() {
        try (var context =
                run(WithMemory.class, WebApplicationType.NONE, "cistern.limit=1MiB", "cistern.leaks=sites")) {
            assertThat(limitOf(context)).isEqualTo(MIB);
            assertThat(context.getBean(DeviceMemory.class).moduleSupport().leakLevel())
                    .isEqualTo(LeakLevel.SITES);
            assertThat(log.messages()).isEmpty();
        }
        assertThat(descriptionOf(WithMemory.class, "cistern.limt=1MiB", "cistern.leaks=maybe"))
                .contains("'cistern.limt'", "'maybe' is not one of");
        assertThat(settings()).isEqualTo(before);
    }

    @Test
    void theLogNamesSettingsThatTheApplicationsMemoryIgnores() {
        assertThat(WithFormerMemory.FORMER.moduleSupport().settings()).doesNotContainKey("cistern.limit");
        try (var _ = run(WithFormerMemory.class, WebApplicationType.NONE, "cistern.limit=1MiB")) {
            assertThat(log.messages())
                    .containsExactly("the device memory of bean 'memory' was opened before, with other settings, and"
                            + " keeps them: cistern.limit is not set, here 1MiB");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class WithListener {
        @Bean
        Registration shrinking(DeviceMemory memory, AtomicInteger asked) {
            return memory.listeners().onMemoryPressure((_, _) -> asked.incrementAndGet());
        }

        @Bean
        AtomicInteger asked() {
            return new AtomicInteger();
        }
    }

    @Test
    void aListenerThatIsABeanEndsWithItsContext() {
        AtomicInteger asked;
        DeviceMemory memory = WithFormerMemory.FORMER;
        long most = memory.driver().devices().totalBytes(DEVICE) / 4 * 3;
        long block = memory.allocate(most, DEVICE, 0);
        try (var context = new SpringApplicationBuilder(WithFormerMemory.class, WithListener.class)
                .web(WebApplicationType.NONE)
                .run("--spring.main.banner-mode=off")) {
            asked = context.getBean(AtomicInteger.class);
            assertThat(catchThrowable(() -> memory.allocate(most, DEVICE, 0))).isNotNull();
            assertThat(asked).hasPositiveValue();
        }
        int before = asked.get();
        assertThat(catchThrowable(() -> memory.allocate(most, DEVICE, 0))).isNotNull();
        assertThat(asked).hasValue(before);
        memory.free(block, 0);
    }

    @Test
    void relaxedNamesAndListsAreSettings() {
        try (var context = start(Map.of(
                "cistern.Limit",
                "8MiB",
                "cistern.scopes.Report",
                true,
                "cistern.observe[0]",
                "jfr",
                "cistern.observe[1]",
                "jmx"))) {
            assertThat(limitOf(context)).isEqualTo(8 * MIB);
            assertThat(context.getBean(DeviceMemory.class).moduleSupport().settings())
                    .containsEntry("cistern.observe", "jfr,jmx")
                    .containsEntry("cistern.scopes.report", "true");
        }
    }

    @Test
    void aVariableIsToldOnceByTheNameOfItsProperty() {
        assertThatThrownBy(() -> startWithVariable("CISTERN_METRICS_SLOW_ALLOCATIONS", "abc"))
                .rootCause()
                .message()
                .startsWith("cistern.metrics.slow-allocations from")
                .doesNotContain("\n");
    }

    /// YAML's `cistern:` with all lines below it commented out is a blank text.
    @Test
    void aSectionWithoutSettingsSetsNothing() {
        start(Map.of("cistern", "")).close();
        for (Map<String, Object> wrong : List.<Map<String, Object>>of(
                Map.of("cistern", "true"), Map.of("cistern", "true", "cistern.limit", "8MiB"))) {
            assertThatThrownBy(() -> start(wrong))
                    .hasRootCauseMessage("cistern from property source \"test\": 'true' belongs to no setting; name"
                            + " one, such as cistern.limit");
        }
    }

    private static void startWithVariable(String name, String value) {
        try (var context = new AnnotationConfigApplicationContext()) {
            context.getEnvironment()
                    .getPropertySources()
                    .replace(
                            StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                            new SystemEnvironmentPropertySource(
                                    StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME, Map.of(name, value)));
            context.register(Driver.class, CisternAutoConfiguration.class);
            context.refresh();
        }
    }

    /// Hides classes, as if their artifact were not on the class path.
    private static ClassLoader without(String... prefixes) {
        return new ClassLoader(CisternAutoConfigurationTests.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (Stream.of(prefixes).anyMatch(name::startsWith)) {
                    throw new ClassNotFoundException(name);
                }
                return super.loadClass(name, resolve);
            }
        };
    }

    @Test
    void theLogSaysWhatMetersAndHealthLack() {
        try (var _ = start(Map.of(), without("io.micrometer.", "org.springframework.boot.health."))) {
            assertThat(log.messages())
                    .containsExactly(
                            "no meters of device memory: Micrometer is not on the class path;"
                                    + " spring-boot-starter-actuator provides it",
                            "no health check of device memory: spring-boot-health is not on the class path;"
                                    + " spring-boot-starter-actuator provides it");
        }
        try (var context = start(Map.of())) {
            assertThat(context.containsBean("cisternHealthIndicator")).isTrue();
            assertThat(log.messages())
                    .last()
                    .isEqualTo("no meters of device memory: the application has no MeterRegistry bean;"
                            + " spring-boot-starter-actuator provides it");
        }
    }

    @Test
    void theLogIsSilentIfNothingIsMissing() {
        try (var _ = run(WithDriver.class, WebApplicationType.NONE)) {
            assertThat(log.messages()).isEmpty();
        }
    }
}
