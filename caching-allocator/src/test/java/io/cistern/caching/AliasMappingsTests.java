package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.StreamLatch;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Programs that never repeat: caches that grow by copying, so that pages move at nearly every request. What they
/// leave behind is bounded, and goes only when no work can use it any more.
class AliasMappingsTests {
    private static final long MIB = 1L << 20;
    private static final int CACHES = 24;
    private static final long MOST = 30 * MIB;
    private static final int A_PAGE = 32;
    private static final long SEED = 7;

    private record Cache(long address, long byteSize) {}

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final GpuContext context = new GpuContext(gpu);
    private final CachingAllocator caching = context.open(PageReuse.WAIT, false);
    private final SplittableRandom random = new SplittableRandom(SEED);
    private final List<Cache> caches = new ArrayList<>();
    private long stream;

    @BeforeEach
    void start() {
        stream = gpu.streams().create(0);
        for (int i = 0; i < CACHES; i++) {
            caches.add(allocate(random.nextLong(MIB, MOST)));
        }
    }

    private void end() {
        caches.forEach(this::free);
        caches.clear();
        caching.streamClosing(0, stream);
        gpu.streams().destroy(0, stream);
    }

    @AfterEach
    void close() {
        end();
        caching.checkInvariants();
        caching.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(1L << 30);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void mappingsAreBoundedHoweverOftenPagesMove() {
        grow(30_000);
        assertThat(figure("pages.aliased")).as("moves to new places").isGreaterThan(2 * A_PAGE * pages());
        assertThat(lent()).isLessThanOrEqualTo(most());
    }

    @Test
    void whatAStreamMayStillUseStaysMapped() {
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            latch.hold(stream);
            grow(30_000);
            assertThat(lent()).isGreaterThan(most());
            assertThat(figure("pages.unaliased")).isZero();
            latch.release();
        }
        gpu.devices().synchronize(0);
        grow(400);
        assertThat(lent()).isLessThanOrEqualTo(most());
    }

    @Test
    void whatAnEndedStreamMayStillUseStaysMappedForItsHeir() {
        end();
        gpu.devices().synchronize(0);
        start();
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            latch.hold(stream);
            grow(30_000);
            long before = figure("pages.unaliased");
            assertThat(lent()).isGreaterThan(most());
            end();
            start();
            grow(200);
            assertThat(lent()).as("what was taken over").isGreaterThan(most());
            assertThat(figure("pages.unaliased")).isEqualTo(before);
            latch.release();
        }
        gpu.devices().synchronize(0);
        grow(5000);
        assertThat(lent()).isLessThanOrEqualTo(most());
    }

    @Test
    void whatSomebodyNeedsWhereItIsHoldsNothingElseBack() {
        context.needed = address -> (address >> 21) % 16 == 0;
        grow(30_000);
        assertThat(figure("pages.aliased")).isGreaterThan(2 * A_PAGE * pages());
        assertThat(lent()).isLessThanOrEqualTo(most() * 9 / 8);
        context.needed = _ -> false;
    }

    @Test
    void aRefusalIsNoConcernOfWhoAllocates() {
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        grow(30_000);
        assertThat(figure("pages.unaliased")).isZero();
        caching.checkInvariants();
        gpu.faults().clear();
        grow(400);
        assertThat(lent()).isLessThanOrEqualTo(most());
    }

    private void grow(int times) {
        for (int i = 0; i < times; i++) {
            int chosen = random.nextInt(CACHES);
            Cache former = caches.get(chosen);
            long grown = former.byteSize + former.byteSize / 16 + random.nextLong(512, 64 << 10);
            caches.set(chosen, allocate(grown > MOST ? random.nextLong(MIB, MOST / 2) : grown));
            free(former);
        }
    }

    private Cache allocate(long byteSize) {
        Cache cache = new Cache(caching.allocate(byteSize, 0, stream), byteSize);
        gpu.copies().fillBytes(0, cache.address, (byte) 1, byteSize, stream);
        return cache;
    }

    private void free(Cache cache) {
        caching.free(cache.address, cache.byteSize, 0, stream);
    }

    private long pages() {
        return figure("pages.created") - figure("pages.released");
    }

    private long most() {
        return A_PAGE * pages() + 128;
    }

    private long lent() {
        return figure("pages.aliased") - figure("pages.unaliased");
    }

    private long figure(String name) {
        Map<String, Long> figures = caching.statistics(0);
        return figures.get(name);
    }
}
