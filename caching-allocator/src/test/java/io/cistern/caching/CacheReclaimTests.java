package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// The steps that only look for memory that the cache has already: each where it alone helps.
final class CacheReclaimTests extends ReclaimFixture {
    /// What thread caches keep also while pages are missing.
    private static final long SMALL = 8 << 10;

    private static List<Long> fill(DeviceMemory memory, long byteSize, long stream) {
        List<Long> blocks = new ArrayList<>();
        try {
            while (true) {
                blocks.add(memory.allocate(byteSize, DEVICE, stream));
            }
        } catch (DeviceOutOfMemoryException full) {
            return blocks;
        }
    }

    /// What a thread cache holds is not worth taking for a page, but when there is no page.
    @Test
    void aBlockInAnotherThreadsThreadCacheIsFound() throws InterruptedException {
        assertAlone(ReclaimStep.OTHER_THREADS, memory -> {
            memory.setCurrent("caching");
            List<Long> blocks = fill(memory, SMALL, stream);
            Thread freeing = Thread.ofPlatform().start(() -> memory.free(blocks.removeLast(), stream));
            freeing.join();
            try {
                return memory.allocate(SMALL, DEVICE, stream);
            } finally {
                blocks.forEach(block -> memory.free(block, stream));
            }
        });
    }

    /// While the driver is asked in vain, another stream gets past its use of a block.
    @Test
    void aFencePassesWhileTheDriverIsAsked() throws InterruptedException {
        assertAlone(ReclaimStep.PASSED_FENCES, memory -> {
            long[] left = {MOST};
            try (MemoryPool pool = MemoryPool.builder(memory)
                    .functions(
                            (byteSize, device) -> {
                                if (byteSize <= left[0]) {
                                    left[0] -= byteSize;
                                    return gpu.memory().allocate(device, byteSize);
                                }
                                gpu.streams().synchronize(device, other);
                                return 0;
                            },
                            (address, byteSize, device) -> {
                                left[0] += byteSize;
                                gpu.memory().free(device, address);
                            })
                    .open()) {
                long block = pool.allocate(MOST, DEVICE, stream);
                gpu.copies().fillBytes(DEVICE, block, (byte) 1, MOST, other);
                memory.recordUse(block, other);
                memory.free(block, stream);
                return pool.allocate(MOST, DEVICE, stream);
            }
        });
    }

    /// The cache had more before than it has now, and would buy that again rather than move pages.
    @Test
    void idlePagesAreMovedWhereNoneCanBeBought() throws InterruptedException {
        assertAlone(ReclaimStep.IDLE_PAGES, memory -> {
            Allocator direct = memory.open("direct");
            Allocator cache = memory.setCurrent("caching");
            memory.free(cache.allocate(MOST, DEVICE, stream), stream);
            cache.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            long taken = direct.allocate(100 * MIB, DEVICE, stream);
            memory.free(cache.allocate(100 * MIB, DEVICE, other), other);
            gpu.streams().synchronize(DEVICE, other);
            try {
                return cache.allocate(100 * MIB, DEVICE, stream);
            } finally {
                memory.free(taken, stream);
            }
        });
    }

    @Test
    void whatAThreadKeepsIsNotCalledAllocated() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        for (int i = 0; i < 20; i++) { // until the thread keeps it
            memory.free(memory.allocate(SMALL, DEVICE, other), other);
        }
        long library = gpu.memory().allocate(DEVICE, 100 * MIB);
        assertThatThrownBy(() -> memory.allocate(MOST, DEVICE, stream))
                .hasStackTraceContaining("of which 0 are allocated");
        gpu.memory().free(DEVICE, library);
    }

    @Test
    void theReportSaysHowLongEachStepTook() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching");
        long library = gpu.memory().allocate(DEVICE, 100 * MIB);
        long begun = gpu.nanoTime();
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(MOST, DEVICE, stream));
        assertThat(failure.steps().stream().mapToLong(TriedStep::nanos).sum()).isBetween(0L, gpu.nanoTime() - begun);
        gpu.memory().free(DEVICE, library);
    }
}
