package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.caching.GpuContext;
import io.cistern.caching.TestContext;
import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.EventSink;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Growing while others free: a free takes no driver lock, so it may come between a thread's search and its
/// growth.
class PageGrowthTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final AddressRangeMap ranges = new AddressRangeMap();
    private final DeviceCounters counters = new DeviceCounters(0, mock(EventSink.class));
    private final PageTable table =
            new PageTable(new PhysicalPages(0, gpu, new GpuContext.GpuPages(gpu), counters), ranges, false);
    private final AtomicLong clock = new AtomicLong();
    private final Fences fences = new Fences(0, gpu, new TestOrder(), counters);
    private final PageGrowth growth = new PageGrowth(
            table,
            clock,
            new CrossStreamOrder(fences, clock, PageReuse.WAIT, counters),
            fences,
            new PagePolicy(2 * MIB, PageFit.USUAL, PageReuse.WAIT, false, 0),
            1L << 30,
            Long.MAX_VALUE);
    private final Shard shard = new Shard(TestContext.timeline(0), false, SplitPolicy.ANY, clock, counters);

    @AfterEach
    void close() {
        shard.checkInvariants();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aBlockFreedAfterTheSearchIsTakenAndNothingIsMapped() {
        long address = growth.grow(shard, 4 * MIB, false);
        free(address);
        assertThat(growth.grow(shard, 4 * MIB, false)).isEqualTo(address);
        free(address);
        assertThat(growth.grow(shard, 3 * MIB, false)).isEqualTo(address);
        assertThat(counters.reservedBytes()).isEqualTo(4 * MIB);
    }

    @Test
    void aBlockFreedAfterTheSearchThatIsTooSmallIsMadeLarger() {
        long address = growth.grow(shard, 4 * MIB, false);
        free(address);
        assertThat(growth.grow(shard, 6 * MIB, false)).isEqualTo(address);
        assertThat(counters.reservedBytes()).isEqualTo(6 * MIB);
        assertThat(gpu.virtualMemory().access(0, address + 6 * MIB - 1, MemoryLocation.device(0)))
                .isEqualTo(AccessRights.READ_WRITE);
    }

    private void free(long address) {
        shard.free(ranges.find(address), address, 0, 0, new RecordedUses());
    }
}
