package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.Admission;
import io.cistern.DeviceMemory;
import io.cistern.async.sharing.ExportedPool;
import io.cistern.cli.common.Plugins;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.pressure.TaskArbiter;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Waits that may take for ever, as programs write it: the longest duration that Java has, and others near the end of
/// what a number of nanoseconds holds.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class EndlessWaitsTests {
    private static final long CAPACITY = 64 << 20;

    @TempDir
    Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();

    @AfterEach
    void close() {
        gpu.close();
    }

    static List<Duration> endless() {
        return List.of(
                ChronoUnit.FOREVER.getDuration(),
                Duration.ofNanos(Long.MAX_VALUE),
                Duration.ofNanos(Long.MAX_VALUE).plusNanos(1));
    }

    private DeviceMemory open(Duration wait) {
        return DeviceMemory.builder(gpu)
                .catalog(Plugins.catalog())
                .waitForFrees(wait)
                .open();
    }

    private static void after(int millis, Runnable action) {
        Thread.ofVirtual().start(() -> {
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            action.run();
        });
    }

    @ParameterizedTest
    @MethodSource("endless")
    void aRequestWaitsForTheNextFree(Duration wait) {
        try (DeviceMemory memory = open(wait)) {
            long first = memory.allocate(40 << 20, 0, 0);
            after(20, () -> memory.free(first, 0));
            memory.free(memory.allocate(40 << 20, 0, 0), 0);
        }
    }

    @ParameterizedTest
    @MethodSource("endless")
    void anAdmissionWaitsForTheNextEnd(Duration wait) {
        try (DeviceMemory memory = open(Duration.ZERO)) {
            Admission first = memory.limits().admit(0, 40 << 20, wait, Admission.Basis.ESTIMATE);
            after(20, first::close);
            memory.limits().admit(0, 40 << 20, wait, Admission.Basis.ESTIMATE).close();
        }
    }

    @ParameterizedTest
    @MethodSource("endless")
    void tasksAndHandlesWait(Duration wait) {
        HandlePoolOptions options = HandlePoolOptions.DEFAULT
                .withMaxWait(wait)
                .withIdleAge(wait)
                .withCloseWait(wait)
                .withMaxVirtualThreads(1);
        HandleLibrary<Long> library = HandleLibrary.of("numbers", _ -> 1L, _ -> {}, (_, _) -> {});
        try (DeviceMemory memory = open(Duration.ZERO);
                HandlePool<Long> pool = HandlePool.open(memory, library, options)) {
            TaskArbiter arbiter = new TaskArbiter(memory.current(0).asUpstream(), wait);
            arbiter.task(1, 0).run(() -> arbiter.free(arbiter.allocate(4096, 0, 0), 4096, 0, 0));
            Thread other = Thread.startVirtualThread(() -> pool.lease(0).close());
            assertThat(catchThrowable(other::join)).isNull();
            pool.lease(0).close();
        }
    }

    @ParameterizedTest
    @MethodSource("endless")
    void anExportedPoolEnds(Duration wait) {
        try (ExportedPool pool = ExportedPool.builder(gpu, 0).patience(wait).serve(folder.resolve("pool"))) {
            assertThat(pool.toString()).isNotEmpty();
        }
    }

    @Test
    void anInterruptedThreadIsAdmittedUnlessItHasToWait() {
        try (DeviceMemory memory = open(Duration.ZERO)) {
            Thread.currentThread().interrupt();
            try (Admission _ = memory.admit(0, 40 << 20)) {
                assertThatThrownBy(() -> memory.admit(0, 40 << 20))
                        .isInstanceOf(DeviceOutOfMemoryException.class)
                        .hasMessageContaining("interrupted");
            }
            assertThat(Thread.interrupted()).isTrue();
        }
    }
}
