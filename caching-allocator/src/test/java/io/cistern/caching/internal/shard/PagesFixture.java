package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestContext;
import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.PageGrowth;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.EventSink;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import java.util.function.LongPredicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;

/// Two shards of large blocks over one table of pages, on a simulated GPU. All pages have one size, so a test knows
/// which page lies where: those of a shard's first blocks lie side by side where its arena begins.
public abstract class PagesFixture {
    protected static final long PAGE = 2L << 20;
    protected static final long CAPACITY = 1L << 30;

    protected final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    protected final TestOrder order = new TestOrder();
    protected final EventSink sink = mock(EventSink.class);
    protected final DeviceCounters counters = new DeviceCounters(0, sink);
    protected final AddressRangeMap ranges = new AddressRangeMap();

    protected final Source source = new Source(gpu, "device");
    protected final PageTable table = new PageTable(new PhysicalPages(0, gpu, source, counters), ranges, false);
    protected final AtomicLong clock = new AtomicLong();
    protected final Fences fences = new Fences(0, gpu, order, counters);
    protected final CrossStreamOrder streams = new CrossStreamOrder(fences, clock, PageReuse.WAIT, counters);
    protected final PageGrowth growth = growth(table, PAGE, streams);
    protected final RecordedUses uses = new RecordedUses();
    protected final Shard shard = newShard(0x1000, false);
    protected final Shard other = newShard(0x2000, false);

    /// Physical memory of the simulated GPU, for a user who has to know where it is mapped.
    protected static final class Source implements PageSource {
        /// Which addresses the user needs mapped.
        public LongPredicate needed = _ -> false;

        /// Called when a page was mapped, before the user knows it.
        public LongConsumer mapping = _ -> {};

        /// The addresses that the user knows.
        public final Set<Long> known = new TreeSet<>();

        private final SimulatedGpu gpu;
        private final String location;

        public Source(SimulatedGpu gpu, String location) {
            this.gpu = gpu;
            this.location = location;
        }

        @Override
        public PageTraits traits(int device) {
            return new PageTraits(PAGE, location, "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            return gpu.virtualMemory().create(byteSize, PhysicalMemory.onDevice(device));
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            gpu.virtualMemory().release(device, handle);
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            mapping.accept(address);
            assertThat(known.add(address)).as("mapped once").isTrue();
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            return !needed.test(address) && known.remove(address);
        }
    }

    protected final PageGrowth growth(PageTable of, long pageBytes, CrossStreamOrder order) {
        PagePolicy pages = new PagePolicy(pageBytes, PageFit.USUAL, PageReuse.WAIT, false, 0);
        return growth(of, pages, order);
    }

    protected final PageGrowth growth(PageTable of, PagePolicy pages, CrossStreamOrder order) {
        return new PageGrowth(of, clock, order, fences, pages, CAPACITY, Long.MAX_VALUE);
    }

    @AfterEach
    protected void nothingIsBroken() {
        shard.checkInvariants();
        other.checkInvariants();
        table.checkInvariants();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// The addresses of all mappings.
    protected final Set<Long> mappedAddresses() {
        return table.mappings().stream().map(each -> each.address).collect(Collectors.toCollection(TreeSet::new));
    }

    /// As after a race: the shard's next search has to begin anew.
    protected static void dropMarks(Shard of) {
        of.marks.kept = false;
    }

    protected final Shard newShard(long stream, boolean small) {
        return new Shard(TestContext.timeline(stream), small, SplitPolicy.ANY, clock, counters);
    }

    /// Allocates a block for which pages are created.
    protected final long grow(Shard to, int pages) {
        return growth.grow(to, pages * PAGE, false);
    }

    /// Allocates a block under which idle pages move, as far as there are any.
    protected final long move(Shard to, int pages) {
        return growth.grow(to, pages * PAGE, true);
    }

    /// Allocates blocks of one page each.
    protected final long[] fill(Shard of, int pages) {
        long[] blocks = new long[pages];
        for (int i = 0; i < pages; i++) {
            blocks[i] = grow(of, 1);
        }
        return blocks;
    }

    /// Frees blocks on the streams of their shards.
    protected final void free(long... addresses) {
        for (long address : addresses) {
            freeOn(Shard.of(range(address)).key, address);
        }
    }

    protected final void freeOn(long stream, long address) {
        Shard.of(range(address)).free(range(address), address, 0, stream, uses);
    }

    /// Frees a block of one page and lets another shard take the page.
    ///
    /// @return that shard's block
    protected final long lend(long block, Shard taker) {
        free(block);
        return move(taker, 1);
    }

    protected final AddressRange range(long address) {
        return Objects.requireNonNull(ranges.find(address));
    }

    /// The mapping at an address where memory is or was.
    protected final Mapping mapping(long address) {
        return Objects.requireNonNull(((PageArena) range(address)).mappingAt(address));
    }
}
