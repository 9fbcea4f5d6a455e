package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Peaks over all allocators, figures by function, snapshots of refusals.
final class ExactQuestionsTests extends ObservedMemory {
    @Test
    void peaksAreOfOneMomentOverAllAllocators() {
        long before = allocate(MIB);
        Allocator other = memory.open("direct");
        try (MemoryPeaks peaks = MemoryPeaks.open(memory, DEVICE)) {
            free(allocate(10 * MIB));
            free(other.allocate(20 * MIB, DEVICE, stream));
            assertThat(peaks.counts()).isEqualTo(new MemoryPeaks.Counts(MIB, 1, 21 * MIB, 2));
            peaks.reset();
            assertThat(peaks.counts()).isEqualTo(new MemoryPeaks.Counts(MIB, 1, MIB, 1));
        }
        free(before);
    }

    @Test
    void peaksAreExactWithManyThreads() throws InterruptedException {
        try (MemoryPeaks peaks = MemoryPeaks.open(memory, DEVICE)) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                threads.add(Thread.ofPlatform().start(() -> {
                    for (int round = 0; round < 300; round++) {
                        free(allocate(512));
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(peaks.counts().bytes()).isZero();
            assertThat(peaks.counts().peakBlocks()).isBetween(1L, 8L);
            assertThat(peaks.counts().peakBytes())
                    .isEqualTo(512 * peaks.counts().peakBlocks());
        }
    }

    @Test
    void aProfileTellsCallsBytesAndPeaksByFunction() {
        try (MemoryProfiler profiler = MemoryProfiler.open(memory)) {
            for (int i = 0; i < 3; i++) {
                try (MemoryProfiler.Call _ = profiler.begin("step")) {
                    long kept = allocate(MIB);
                    try (MemoryProfiler.Call _ = profiler.begin("inner")) {
                        free(allocate(4 * MIB));
                    }
                    free(kept);
                }
            }
            assertThat(profiler.figures())
                    .containsExactly(
                            new MemoryProfiler.Figures("step", 3, 6, 15 * MIB, 5 * MIB),
                            new MemoryProfiler.Figures("inner", 3, 3, 12 * MIB, 4 * MIB));
            assertThat(profiler.text()).contains("step", "inner");
        }
    }

    @Test
    void blocksFromBeforeACallAreNoPartOfItsPeak() {
        try (MemoryProfiler profiler = MemoryProfiler.open(memory)) {
            long before = allocate(4 * MIB);
            try (MemoryProfiler.Call _ = profiler.begin("step")) {
                free(before);
                free(allocate(MIB));
            }
            assertThat(profiler.figures()).containsExactly(new MemoryProfiler.Figures("step", 1, 1, MIB, MIB));
        }
    }

    @Test
    void callsEndTheInnermostFirst() {
        try (MemoryProfiler profiler = MemoryProfiler.open(memory)) {
            MemoryProfiler.Call outer = profiler.begin("outer");
            MemoryProfiler.Call inner = profiler.begin("inner");
            assertThatIllegalStateException().isThrownBy(outer::close);
            inner.close();
            outer.close();
            assertThat(profiler.figures()).hasSize(2);
        }
    }

    @Test
    void refusalsWriteSnapshotsUpToANumber(@TempDir Path folder) throws IOException {
        Path into = folder.resolve("snapshots");
        long library = gpu.memory().allocate(DEVICE, 20 * MIB);
        try (Registration _ = OutOfMemorySnapshots.writeTo(memory, into, 2)) {
            for (int i = 0; i < 3; i++) {
                assertThatThrownBy(() -> allocate(250 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            }
        }
        gpu.memory().free(DEVICE, library);
        try (Stream<Path> files = Files.list(into)) {
            assertThat(files)
                    .hasSize(2)
                    .allSatisfy(file -> assertThat(Files.readString(file))
                            .contains("\"reason\":\"out of memory\"", "\"steps\":[{"));
        }
    }

    @Test
    void aRefusalByALimitIsNotLoggedAsLackOfMemory(@TempDir Path folder) {
        Logger logger = Logger.getLogger(OutOfMemorySnapshots.class.getName());
        List<String> told = new ArrayList<>();
        logger.setFilter(line -> {
            told.add(line.getMessage());
            return false;
        });
        try (Registration _ = OutOfMemorySnapshots.writeTo(memory, folder, 1);
                MemoryPool pool = MemoryPool.builder(memory)
                        .tag("weights")
                        .limitBytes(MIB)
                        .open()) {
            assertThatThrownBy(() -> pool.allocate(2 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
        } finally {
            logger.setFilter(null);
        }
        assertThat(told)
                .singleElement()
                .asString()
                .startsWith("a request of " + 2 * MIB + " bytes on device 0 was refused by '")
                .contains("weights", ": see ");
    }
}
