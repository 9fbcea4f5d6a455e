package io.cistern.reports;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.ScopeOptions;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.internal.names.SettingProblems;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

class ScopeReportTests {
    @RegisterExtension
    private final LogOf log = new LogOf("io.cistern.scopes");

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();

    @AfterEach
    void close() {
        gpu.close();
    }

    private DeviceMemory open(boolean report) {
        DeviceMemory memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                .reportScopes(report)
                .open();
        memory.setCurrent("direct");
        return memory;
    }

    private static void inWorker(Runnable work) throws InterruptedException {
        Thread.ofPlatform().name("worker").start(work).join();
    }

    private static void pair(DeviceMemory memory, int device) {
        memory.free(memory.allocate(100, device, 0), 0);
    }

    @Test
    void aWorkerWithoutTheScopeIsReportedOnceWithTheOpenScopes() throws Exception {
        try (DeviceMemory memory = open(true);
                Scope _ = memory.open("direct").enter()) {
            inWorker(() -> {
                pair(memory, 0);
                pair(memory, 0);
            });
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .contains("thread worker allocated on device 0")
                    .contains("direct in thread " + Thread.currentThread().getName());
        }
    }

    @Test
    void aWordThatIsNeitherTrueNorFalseIsAProblem() {
        System.setProperty("cistern.scopes.report", "some");
        try {
            assertThat(SettingProblems.of(Settings.ofProcess()))
                    .containsExactly("property cistern.scopes.report: 'some' is not one of true, false");
        } finally {
            System.clearProperty("cistern.scopes.report");
        }
    }

    @Test
    void eachPlaceIsReportedOnceHoweverManyThreadsPass() throws Exception {
        try (DeviceMemory memory = open(true);
                Scope _ = memory.open("direct").enter()) {
            for (int i = 0; i < 3; i++) {
                inWorker(() -> pair(memory, 0));
                Thread.ofVirtual().start(() -> pair(memory, 0)).join();
            }
            inWorker(() -> memory.free(memory.allocate(100, 0, 0), 0));
            assertThat(log.messages()).hasSize(2);
            assertThat(log.messages().getFirst()).contains("; at io.cistern.reports.ScopeReportTests.pair(");
            assertThat(log.messages().getLast()).contains("ScopeReportTests.lambda$");
        }
    }

    private static MemoryPool pool(DeviceMemory memory) {
        return MemoryPool.builder(memory).spec("direct").open();
    }

    private static Scope forgetful(MemoryPool pool) {
        return pool.enter();
    }

    @Test
    void aPoolThatClosesInItsOwnScopeReportsIt() {
        try (DeviceMemory memory = open(true)) {
            MemoryPool pool = pool(memory);
            Scope scope = forgetful(pool);
            pool.close();
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .contains("(direct) is open while the pool closes")
                    .contains("thread " + Thread.currentThread().getName())
                    .contains("at io.cistern.reports.ScopeReportTests.forgetful(ScopeReportTests.java:");
            scope.close();
            assertThat(pool.isDrained()).isTrue();
        }
    }

    @Test
    void aPoolThatClosesReportsScopesOfThreadsThatEnded() throws Exception {
        try (DeviceMemory memory = open(true)) {
            Scope[] kept = new Scope[1];
            MemoryPool pool = pool(memory);
            inWorker(() -> kept[0] = forgetful(pool));
            pool.close();
            assertThat(log.messages()).singleElement().asString().contains("thread worker at", "forgetful(");
            assertThat(kept[0].allocator()).isNotNull();
        }
    }

    @Test
    void scopesThatOtherThreadsWillCloseAreNotForgotten() throws Exception {
        try (DeviceMemory memory = open(true)) {
            MemoryPool pool = pool(memory);
            CountDownLatch inside = new CountDownLatch(1);
            CountDownLatch closed = new CountDownLatch(1);
            Thread worker = Thread.ofPlatform().start(() -> {
                try (Scope _ = pool.enter()) {
                    inside.countDown();
                    closed.await();
                } catch (InterruptedException stopped) {
                    throw new AssertionError(stopped);
                }
            });
            inside.await();
            pool.close();
            closed.countDown();
            worker.join();
            assertThat(pool.isDrained()).isTrue();
        }
        assertThat(log.messages()).isEmpty();
    }

    @Test
    void scopesThatAreOpenWhenTheirDeviceMemoryClosesAreReported() {
        Scope kept;
        try (DeviceMemory memory = open(true)) {
            kept = memory.open("direct").enter();
        }
        assertThat(log.messages()).singleElement().asString().contains("is open while its device memory closes");
        assertThat(kept.allocator().isClosed()).isTrue();
    }

    @Test
    @Timeout(value = 2, unit = TimeUnit.MINUTES)
    void aScopeThatIsDroppedWithoutCloseIsReported() throws Exception {
        try (DeviceMemory memory = open(true)) {
            Allocator allocator = memory.open("direct");
            for (int i = 0; i < 3; i++) {
                inWorker(() -> allocator.enter().allocator());
            }
            while (log.messages().isEmpty()) {
                System.gc();
                Thread.sleep(5);
            }
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .contains("a scope of direct was dropped without being closed: entered by thread worker at")
                    .contains("ScopeReportTests.lambda$");
        }
    }

    @Test
    void nobodyIsReportedWhoIsInAScopeOrWhileNoneIsOpen() throws Exception {
        try (DeviceMemory memory = open(true)) {
            pair(memory, 0);
            try (Scope _ = memory.open("direct").enter()) {
                pair(memory, 0);
                ScopeCarrier here = ScopeCarrier.capture(memory);
                inWorker(here.wrap(() -> pair(memory, 0)));
            }
            inWorker(() -> pair(memory, 0));
            assertThat(log.messages()).isEmpty();
        }
    }

    @Test
    void aScopeForAnotherDeviceIsNoReason() throws Exception {
        try (DeviceMemory memory = open(true);
                Scope _ = memory.open("direct").enter(ScopeOptions.all().device(1))) {
            inWorker(() -> pair(memory, 0));
            assertThat(log.messages()).isEmpty();
            inWorker(() -> pair(memory, 1));
            assertThat(log.messages()).hasSize(1);
        }
    }

    @Test
    void swapsAndDefaultsWorkWhileReporting() {
        try (DeviceMemory memory = open(true)) {
            long before = memory.allocate(100, 0, 0);
            Allocator next = memory.open("direct");
            memory.currents().set(next);
            long after = memory.allocate(100, 0, 0);
            assertThat(next.statistics(0).allocations()).isEqualTo(1);
            memory.free(before, 0);
            memory.free(after, 0);
            assertThat(memory.allocators()).containsExactly(next);
        }
    }

    @Test
    void nothingIsReportedByDefault() throws Exception {
        try (DeviceMemory memory = open(false);
                Scope _ = memory.open("direct").enter()) {
            inWorker(() -> pair(memory, 0));
            assertThat(log.messages()).isEmpty();
        }
    }
}
