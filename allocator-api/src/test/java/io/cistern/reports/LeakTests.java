package io.cistern.reports;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.ModuleSupport;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.graph.GraphCapture;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.SettingProblems;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class LeakTests {
    @RegisterExtension
    private final LogOf log = new LogOf(Leaks.class.getName());

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();

    private DeviceMemory open(LeakLevel level) {
        DeviceMemory memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                .leakLevel(level)
                .open();
        memory.setCurrent("direct");
        return memory;
    }

    /// Frees what is alive and closes.
    private static void end(DeviceMemory memory) {
        memory.liveBlocks().forEach(block -> memory.free(block.address(), 0));
        assertThat(memory.liveBlocks()).isEmpty();
        memory.close();
    }

    @Test
    void offTellsWhatIsAliveWithoutItsSite() {
        DeviceMemory memory = open(LeakLevel.OFF);
        long block = memory.allocate(5000, 1, 0);
        assertThat(memory.liveBlocks())
                .containsExactly(new LiveBlock(
                        block,
                        5000,
                        1,
                        "direct",
                        OptionalLong.empty(),
                        Optional.empty(),
                        List.of(),
                        Optional.empty(),
                        false));
        memory.current(0).close();
        assertThat(log.messages()).isEmpty();
        end(memory);
    }

    @ParameterizedTest
    @EnumSource(LeakLevel.class)
    void whatOnlyAGraphKeepsIsNoLeak(LeakLevel level) {
        DeviceMemory memory = open(level);
        long stream = gpu.streams().create(0);
        long workspace = memory.allocate(5000, 0, stream);
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            long inCapture = memory.allocate(7000, 0, stream);
            assertThat(memory.liveBlocks()).extracting(LiveBlock::address).containsOnly(workspace, inCapture);
            assertThat(memory.moduleSupport().isLive(workspace)).isTrue();
            memory.free(workspace, stream);
            memory.free(inCapture, stream);
            assertThat(memory.liveBlocks()).isEmpty();
            assertThat(memory.moduleSupport().isLive(workspace)).isFalse();
            assertThat(memory.moduleSupport().isLive(inCapture)).isFalse();
            assertThat(memory.current(0).liveBlocks()).isEmpty();
            long graph = capture.end();
            memory.current(0).close();
            gpu.graphs().destroy(0, graph);
        }
        assertThat(log.messages()).isEmpty();
        end(memory);
    }

    @ParameterizedTest
    @EnumSource(LeakLevel.class)
    void everyLevelTellsTheBlocksThatAreAliveAndNoOthers(LeakLevel level) {
        DeviceMemory memory = open(level);
        List<Long> alive = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            long block = memory.allocate(1 + i * 300, i % 2, 0);
            if (i % 3 == 0) {
                alive.add(block);
            } else {
                memory.free(block, 0);
            }
        }
        assertThat(memory.liveBlocks()).extracting(LiveBlock::address).containsExactlyInAnyOrderElementsOf(alive);
        end(memory);
    }

    @Test
    void sitesTellsWhoAskedForABlockAndWhenAndForWhichStream() {
        DeviceMemory memory = open(LeakLevel.SITES);
        long stream = gpu.streams().create(0);
        memory.allocate(5000, 0, stream);
        LiveBlock block = memory.liveBlocks().getFirst();
        assertThat(block.site()).hasSizeBetween(1, 8).first().satisfies(frame -> {
            assertThat(frame.getClassName()).isEqualTo(LeakTests.class.getName());
            assertThat(frame.getMethodName()).isEqualTo("sitesTellsWhoAskedForABlockAndWhenAndForWhichStream");
        });
        assertThat(block.stream()).hasValue(stream);
        assertThat(block.age()).hasValueSatisfying(age -> assertThat(age).isPositive());
        assertThat(block.thread()).isEmpty();
        end(memory);
    }

    @Test
    void sitesLeaveOutTheFramesOfScopes() {
        DeviceMemory memory = open(LeakLevel.SITES);
        memory.current(0).call(ScopeOptions.all(), () -> memory.allocate(5000, 0, 0));
        assertThat(memory.liveBlocks().getFirst().site())
                .extracting(StackTraceElement::getClassName)
                .contains(LeakTests.class.getName())
                .noneMatch(name -> name.contains("ScopedValue") || name.equals(Allocator.class.getName()));
        end(memory);
    }

    @Test
    void allTellsTheWholeStackAndTheThread() throws Exception {
        DeviceMemory memory = open(LeakLevel.ALL);
        Thread.ofPlatform().name("worker 7").start(() -> deep(memory, 50)).join();
        LiveBlock block = memory.liveBlocks().getFirst();
        assertThat(block.thread()).hasValue("worker 7");
        assertThat(block.site()).hasSizeGreaterThan(50);
        assertThat(block.site().getLast().getMethodName()).isEqualTo("run");
        end(memory);
    }

    private static void deep(DeviceMemory memory, int depth) {
        if (depth > 0) {
            deep(memory, depth - 1);
        } else {
            memory.allocate(100, 0, 0);
        }
    }

    @Test
    void sampledKeepsSitesOfSomeSmallAndAllLargeBlocks() {
        DeviceMemory memory = open(LeakLevel.SAMPLED);
        for (int i = 0; i < 2560; i++) {
            memory.allocate(1000, 0, 0);
        }
        assertThat(memory.liveBlocks().stream().filter(block -> !block.site().isEmpty()))
                .hasSizeBetween(10, 11);
        long large = memory.allocate(64L << 20, 0, 0);
        assertThat(memory.liveBlocks())
                .filteredOn(block -> block.address() == large)
                .allMatch(block -> block.age().isPresent());
        end(memory);
    }

    /// The direct allocator gives the address again at once: the record of the former block must not be told of
    /// the next.
    @Test
    void sampledForgetsABlockWithItsFree() {
        DeviceMemory memory = open(LeakLevel.SAMPLED);
        long large = memory.allocate(64L << 20, 0, 0);
        memory.free(large, 0);
        long small = memory.allocate(1000, 0, 0);
        assertThat(small).isEqualTo(large);
        assertThat(memory.liveBlocks())
                .singleElement()
                .satisfies(block -> assertThat(block.site()).isEmpty());
        end(memory);
    }

    @Test
    void anAllocatorThatClosesTellsWhatItLeavesAlive() {
        DeviceMemory memory = open(LeakLevel.SITES);
        Allocator pool = memory.open("direct");
        memory.allocate(100, 0, 0);
        for (int i = 0; i < 3; i++) {
            pool.allocate(7000, 0, 0);
        }
        try (Scope _ = pool.enter(ScopeOptions.all().limit(MemoryLimit.of("task", 1 << 20)))) {
            memory.allocate(9000, 0, 0);
        }
        assertThat(pool.liveBlocks()).hasSize(4);
        pool.close();
        assertThat(log.messages())
                .singleElement()
                .asString()
                .contains("allocator direct closes: 4 live blocks of 30000 bytes")
                .contains("3 blocks of 21000 bytes from allocator direct on device 0")
                .contains("LeakTests.anAllocatorThatClosesTellsWhatItLeavesAlive");
        end(memory);
    }

    @Test
    void aReplacedAllocatorReportsItsBlocksAtTheEnd() {
        DeviceMemory memory = open(LeakLevel.SITES);
        long freed = memory.allocate(100, 0, 0);
        long leaked = memory.allocate(7000, 0, 0);
        memory.currents().set(memory.open("direct"));
        memory.free(freed, 0);
        assertThat(log.messages()).isEmpty();
        memory.close();
        assertThat(log.messages()).singleElement().asString().contains(" closes: 1 live block of 7000 bytes");
        memory.free(leaked, 0);
    }

    @Test
    void anAllocatorThatClosesWithoutLiveBlocksSaysNothing() {
        DeviceMemory memory = open(LeakLevel.ALL);
        memory.free(memory.allocate(100, 0, 0), 0);
        memory.close();
        assertThat(log.messages()).isEmpty();
    }

    /// A whole stack for each block would remain, in several times the memory, after a look at the health of a service.
    @Test
    void ofAStackThatWasReadOnlyTheFramesRemain() {
        try (DeviceMemory memory = open(LeakLevel.SITES)) {
            long address = memory.allocate(100, 0, 0);
            assertThat(memory.liveBlocks().getFirst().site())
                    .isNotEmpty()
                    .isSameAs(memory.liveBlocks().getFirst().site());
            memory.free(address, 0);
        }
    }

    @Test
    void anUnknownLevelIsAProblemThatNamesTheLegalOnes() {
        @Nullable String before = System.getProperty("cistern.leaks");
        try {
            System.setProperty("cistern.leaks", "Sites");
            assertThat(Leaks.levelIn(Settings.ofProcess())).isEqualTo(LeakLevel.SITES);
            System.setProperty("cistern.leaks", "some");
            assertThat(Leaks.levelIn(Settings.ofProcess())).isEqualTo(LeakLevel.OFF);
            assertThat(SettingProblems.of(Settings.ofProcess()))
                    .containsExactly("property cistern.leaks: 'some' is not one of off, sampled, sites, all");
        } finally {
            if (before == null) {
                System.clearProperty("cistern.leaks");
            } else {
                System.setProperty("cistern.leaks", before);
            }
        }
    }

    /// A program that leaks, for the test below.
    static final class Leaking {
        private static final DeviceMemory MEMORY = DeviceMemory.builder(
                        SimulatedGpu.builder().build())
                .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                .open();

        public static void main(String[] arguments) {
            MEMORY.setCurrent("direct");
            MEMORY.allocate(12_345, 0, 0);
            MEMORY.free(MEMORY.allocate(100, 0, 0), 0);
        }
    }

    /// A program in a class loader of its own, for the test below.
    public static final class Unloaded implements Runnable {
        @Override
        public void run() {
            try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                    DeviceMemory memory = DeviceMemory.builder(gpu)
                            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                            .leakLevel(LeakLevel.SITES)
                            .open()) {
                memory.setCurrent("direct");
                memory.free(memory.allocate(100, 0, 0), 0);
            }
        }
    }

    @Test
    void closedMemoryKeepsNoClassLoader() throws Exception {
        WeakReference<ClassLoader> loader = new WeakReference<>(runUnloaded());
        for (int tries = 0; tries < 500 && !loader.refersTo(null); tries++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(loader.get()).isNull();
    }

    private static ClassLoader runUnloaded() throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String entry : OwnJvm.classPath(Unloaded.class)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        try (URLClassLoader loader =
                new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
            Object program = loader.loadClass(Unloaded.class.getName())
                    .getDeclaredConstructor()
                    .newInstance();
            Thread thread = Thread.ofPlatform().unstarted((Runnable) program);
            thread.setContextClassLoader(loader);
            thread.start();
            thread.join();
            return loader;
        }
    }

    /// A program whose framework reports leaks while the process ends, for the test below.
    static final class Reported {
        public static void main(String[] arguments) {
            Leaking.main(arguments);
            ModuleSupport.reportLeaksBy(report -> Runtime.getRuntime().addShutdownHook(new Thread(report)));
        }
    }

    @Test
    void theEndOfAProcessIsQuietWhereLeaksAreOff() throws Exception {
        assertThat(OwnJvm.run(Reported.class, "-Dcistern.leaks=off", "--enable-native-access=ALL-UNNAMED"))
                .isEmpty();
        assertThat(String.join(
                        "\n",
                        OwnJvm.run(Reported.class, "-Dcistern.leaks=sites", "--enable-native-access=ALL-UNNAMED")))
                .contains("the process ends: 1 live block of 12345 bytes");
    }

    @Test
    void theEndOfAProcessTellsWhatIsAlive() throws Exception {
        List<String> output = OwnJvm.run(Leaking.class, "-Dcistern.leaks=sites", "--enable-native-access=ALL-UNNAMED");
        assertThat(String.join("\n", output))
                .contains("the process ends: 1 live block of 12345 bytes")
                .contains("LeakTests$Leaking.main");
    }
}
