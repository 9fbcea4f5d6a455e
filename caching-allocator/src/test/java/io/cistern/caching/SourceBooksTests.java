package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A source of pages hears where its memory is mapped, opens it to others, and may keep it there.
class SourceBooksTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(256 * MIB).devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new CachingProvider()), List.of()))
            .open();
    private final Books books = new Books();
    private final long a = gpu.streams().create(0);
    private final long b = gpu.streams().create(0);

    /// Device memory that both devices may use, and what was told of it.
    private final class Books implements PageSource {
        final Map<Long, Long> mapped = new TreeMap<>();
        boolean keeps;

        @Override
        public PageTraits traits(int device) {
            return new PageTraits(2 << 20, "device", "none", false);
        }

        @Override
        public List<MemoryLocation> accessors(int device) {
            return List.of(MemoryLocation.device(0), MemoryLocation.device(1));
        }

        @Override
        public long create(long byteSize, int device) {
            return gpu.virtualMemory().create(byteSize, PhysicalMemory.onDevice(device));
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            assertThat(gpu.virtualMemory().access(0, address, MemoryLocation.device(1)))
                    .isEqualTo(AccessRights.READ_WRITE);
            assertThat(mapped.put(address, byteSize)).as("told once").isNull();
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            assertThat(gpu.virtualMemory().access(0, address, MemoryLocation.device(0)))
                    .as("still mapped")
                    .isEqualTo(AccessRights.READ_WRITE);
            return !keeps && mapped.remove(address, byteSize);
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            gpu.virtualMemory().release(device, handle);
        }

        long bytes() {
            return mapped.values().stream().mapToLong(Long::longValue).sum();
        }
    }

    @AfterEach
    void everythingIsUnmapped() {
        memory.close();
        assertThat(books.mapped).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(256 * MIB);
        gpu.close();
    }

    private MemoryPool pool(String spec) {
        return MemoryPool.builder(memory).spec(spec).source(books).open();
    }

    private void allocateAndFree(MemoryPool pool, long byteSize, long stream) {
        memory.free(pool.allocate(byteSize, 0, stream), stream);
        gpu.streams().synchronize(0, stream);
    }

    @Test
    void everyPlaceOfAPageIsToldOfOnceAndAskedForOnce() {
        try (MemoryPool pool = pool("caching:thread_caches=false,fit=tight")) {
            allocateAndFree(pool, 40 * MIB, a);
            allocateAndFree(pool, 40 * MIB, b);
            assertThat(pool.reservedBytes(0)).hasValue(40 * MIB);
            assertThat(books.bytes()).as("mapped for both streams").isEqualTo(80 * MIB);
            pool.trim(0, 0, TrimMode.WITHOUT_WAITING);
            assertThat(books.mapped).isEmpty();
        }
    }

    @Test
    void whatTheSourceKeepsStaysAndGoesWithALaterTrim() {
        for (String spec : List.of("caching:thread_caches=false,fit=tight", "caching:splits=false")) {
            try (MemoryPool pool = pool(spec)) {
                allocateAndFree(pool, 40 * MIB, a);
                allocateAndFree(pool, 40 * MIB, b);
                books.keeps = true;
                assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                        .as(spec)
                        .isZero();
                long held = books.bytes();
                books.keeps = false;
                allocateAndFree(pool, 40 * MIB, a);
                assertThat(books.bytes()).as("nothing more").isEqualTo(held);
                pool.trim(0, 0, TrimMode.WITHOUT_WAITING);
                assertThat(books.mapped).isEmpty();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"MEM_RELEASE", "MEM_UNMAP"})
    void aSegmentThatTheDriverDoesNotTakeBackGoesWithALaterTrim(DriverCall refused) {
        try (MemoryPool pool = pool("caching:splits=false")) {
            allocateAndFree(pool, 40 * MIB, a);
            gpu.faults().failOn(refused, 0, 1, CudaResult.UNKNOWN);
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isZero();
            assertThat(pool.reservedBytes(0)).hasValue(40 * MIB);
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isEqualTo(40 * MIB);
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(256 * MIB);
        }
    }

    @Test
    void aStreamThatEndedLeavesWhatTheSourceKeepsToALaterTrim() {
        try (MemoryPool pool = pool("caching:thread_caches=false,fit=tight")) {
            allocateAndFree(pool, 40 * MIB, a);
            long block = pool.allocate(40 * MIB, 0, b);
            books.keeps = true;
            memory.streamClosing(0, a);
            assertThat(books.bytes()).as("aliased by the ended stream").isEqualTo(80 * MIB);
            books.keeps = false;
            memory.free(block, b);
            gpu.streams().synchronize(0, b);
            pool.trim(0, 0, TrimMode.WITHOUT_WAITING);
            assertThat(books.mapped).isEmpty();
        }
    }

    @Test
    void thePoolFindsWhatItsSourceCanDo() {
        try (MemoryPool pool = pool("caching:per_process_memory_fraction=0.5")) {
            assertThat(pool.extension(Books.class)).contains(books);
            assertThat(pool.extension(Runnable.class)).isEmpty();
        }
    }
}
