package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A request is refused only if nothing could serve it. Random programs fill a small device with small and large
/// blocks, on several streams and threads, and keep some of them for long. After each refusal, an outsider who knows
/// only the program's live blocks and the segments of the allocator looks for memory that would have served.
///
/// Live memory stays where it is: there is no compaction here.
final class RefusalTests extends PoolFixture {
    private static final long CAPACITY = 16 * MIB;
    private static final int ROUNDS = 8;
    private static final int PARANOID_ROUNDS = 2;
    private static final int MOST_REQUESTS = 3000;
    /// Requests of all sizes after the device is full.
    private static final int REQUESTS_WHEN_FULL = 12;
    /// The work of a stream ends before the allocator looks, while it looks, or while it waits.
    private static final long MOST_BUSY_NANOS = 4_000_000;
    private static final long[] LARGEST = {64 << 10, 64 << 10, 5 * MIB / 4, 8 * MIB};
    private static final int[] EACH_KEPT = {2, 3, 8, 64};

    /// The ways to configure the allocator.
    enum Way {
        PAGES("caching", true),
        TIGHT("caching:fit=tight", true),
        WAITING("caching:reuse=wait", true),
        NEVER_REUSED("caching:reuse=never", true),
        LARGE_PAGES("caching:page_size=4MiB", true),
        STABLE("caching:stable_mapping=true", true),
        WITHOUT_THREAD_CACHES("caching:thread_caches=false", true),
        ALIGNED("caching:alignment=4096", true),
        CAPPED("caching:max_bytes=12MiB", true),
        REJECTING("caching:per_process_memory_fraction=0.75,throw_on_cudamalloc_oom=true", true),
        CHECKED("caching:check=checked", true),
        PARANOID("caching:check=paranoid", true),
        SEGMENTS("caching:expandable_segments=false", false),
        UNSPLIT("caching:splits=false", false),
        PARANOID_SEGMENTS("caching:expandable_segments=false,check=paranoid", false),
        LINEAR("caching:source=linear", false),
        POOL("caching", true),
        POOL_OF_FUNCTIONS("", false);

        final String spec;
        final boolean byPages;

        Way(String spec, boolean byPages) {
            this.spec = spec;
            this.byPages = byPages;
        }

        /// Each call checks all blocks then.
        boolean isParanoid() {
            return this == PARANOID || this == PARANOID_SEGMENTS;
        }

        long pageBytes() {
            return this == LARGE_PAGES ? 4 * MIB : Sizes.SLOT;
        }

        /// The bytes that the allocator may take at most.
        long capBytes() {
            return this == CAPPED || this == REJECTING ? CAPACITY / 4 * 3 : CAPACITY;
        }

        /// The size of the block for a request, or a little more.
        long blockBytes(long byteSize) {
            return switch (this) {
                case ALIGNED -> byteSize + byteSize / 4 + 4096;
                case UNSPLIT -> Sizes.roundUp(byteSize, Sizes.SLOT);
                case PARANOID, PARANOID_SEGMENTS -> rounded(byteSize + 256);
                default -> rounded(byteSize);
            };
        }

        private static long rounded(long byteSize) {
            return Sizes.hasClass(byteSize)
                    ? Sizes.byteSize(Sizes.classOf(byteSize))
                    : Sizes.rounded(byteSize, Sizes.GRANULE);
        }
    }

    private record Block(long address, long byteSize, long stream) {}

    /// A stretch of addresses that no live block covers.
    private record Run(long from, long to) {
        long byteSize() {
            return to - from;
        }

        /// The bytes of whole pages in it.
        long pages(long pageBytes) {
            return Math.max(0, to / pageBytes * pageBytes - Sizes.roundUp(from, pageBytes));
        }
    }

    private final long other = gpu.streams().create(DEVICE);
    private final ExecutorService platform =
            Executors.newSingleThreadExecutor(Thread.ofPlatform().factory());
    private final ExecutorService virtual =
            Executors.newThreadPerTaskExecutor(Thread.ofVirtual().factory());
    private final TreeMap<Long, Block> live = new TreeMap<>();
    private SplittableRandom random = new SplittableRandom();
    private int refusals;

    RefusalTests() {
        super(CAPACITY, EnumSet.complementOf(EnumSet.of(ReclaimStep.COMPACTION)));
    }

    @AfterEach
    void end() {
        platform.close();
        virtual.close();
    }

    @ParameterizedTest
    @EnumSource
    void onlyWhatNothingCouldServeIsRefused(Way way) throws Exception {
        Allocator allocator = open(way);
        int rounds = way.isParanoid() ? PARANOID_ROUNDS : ROUNDS;
        for (long seed = 1; seed <= 2; seed++) {
            random = new SplittableRandom(seed);
            for (int round = 0; round < rounds; round++) {
                fill(allocator, way, LARGEST[random.nextInt(LARGEST.length)]);
                for (int i = 0; i < REQUESTS_WHEN_FULL; i++) {
                    request(allocator, way, size(LARGEST[random.nextInt(LARGEST.length)]));
                }
                freeMost();
            }
            assertThat(refusals).as("the device was full, seed %d", seed).isGreaterThan(rounds);
        }
        for (Block block : List.copyOf(live.values())) {
            free(block, block.stream);
        }
    }

    private Allocator open(Way way) {
        return switch (way) {
            case POOL -> memory.pools().open(way.spec);
            case POOL_OF_FUNCTIONS -> new Functions().pool();
            default -> memory.open(way.spec);
        };
    }

    private void fill(Allocator allocator, Way way, long largest) throws Exception {
        for (int i = 0; i < MOST_REQUESTS && request(allocator, way, size(largest)); i++) {
            if (random.nextInt(8) == 0 && !live.isEmpty()) {
                freeAny();
            }
        }
    }

    private long size(long largest) {
        return random.nextInt(4) == 0 ? (long) Math.pow(largest, random.nextDouble()) : random.nextLong(largest) + 1;
    }

    private boolean request(Allocator allocator, Way way, long byteSize) throws Exception {
        long on = random.nextInt(4) == 0 ? other : stream;
        try {
            long address = elsewhere(() -> allocator.allocate(byteSize, DEVICE, on));
            live.put(address, new Block(address, byteSize, on));
            return true;
        } catch (DeviceOutOfMemoryException refusal) {
            refusals++;
            assertNothingServes(allocator, way, byteSize, on, refusal);
            return false;
        }
    }

    /// Calls on this thread, on another one, or on a virtual one.
    private long elsewhere(Callable<Long> call) throws Exception {
        int dice = random.nextInt(10);
        if (dice > 1) {
            return call.call();
        }
        Future<Long> done = (dice == 0 ? platform : virtual).submit(call);
        try {
            return done.get();
        } catch (ExecutionException failure) {
            throw failure.getCause() instanceof Exception cause ? cause : failure;
        }
    }

    private void freeMost() throws Exception {
        int kept = EACH_KEPT[random.nextInt(EACH_KEPT.length)];
        int number = 0;
        for (Block block : List.copyOf(live.values())) {
            if (number++ % kept != 0 || random.nextInt(4) == 0) {
                free(block, freeing(block));
            }
        }
    }

    private void freeAny() throws Exception {
        long anywhere = random.nextLong(live.firstKey(), live.lastKey() + 1);
        Block block = live.ceilingEntry(anywhere).getValue();
        free(block, freeing(block));
    }

    /// Mostly the block's own stream; another one is at work then.
    private long freeing(Block block) {
        if (random.nextInt(16) != 0) {
            return block.stream;
        }
        long last = block.stream == stream ? other : stream;
        gpu.keepBusy(DEVICE, last, random.nextLong(20_000, MOST_BUSY_NANOS));
        return last;
    }

    private void free(Block block, long last) throws Exception {
        live.remove(block.address);
        elsewhere(() -> {
            memory.free(block.address, last);
            return 0L;
        });
    }

    private void assertNothingServes(
            Allocator allocator, Way way, long byteSize, long on, DeviceOutOfMemoryException refusal) {
        long needed = way.blockBytes(byteSize);
        List<SegmentMemory> segments = allocator.segments(DEVICE);
        long longest = segments.stream()
                .filter(segment -> segment.stream().orElse(-1) == on)
                .flatMap(segment -> idleRuns(segment, way == Way.REJECTING).stream())
                .mapToLong(Run::byteSize)
                .max()
                .orElse(0);
        assertThat(longest).as("idle in one piece on the stream: %s", refusal).isLessThan(needed);
        if (way != Way.REJECTING) {
            assertThat(obtainable(allocator, way, segments))
                    .as("idle elsewhere or at the driver: %s", refusal)
                    .isLessThan(Sizes.roundUp(needed, way.pageBytes()));
        }
    }

    /// The bytes that the allocator can still get, and those that can go to another place or stream.
    private long obtainable(Allocator allocator, Way way, List<SegmentMemory> segments) {
        long free = Math.min(
                gpu.memory().info(DEVICE).freeBytes(),
                way.capBytes() - allocator.reservedBytes(DEVICE).orElseThrow());
        return free / way.pageBytes() * way.pageBytes()
                + segments.stream()
                        .flatMap(segment -> idleRuns(segment, false).stream()
                                .filter(run -> way.byPages || run.byteSize() == segment.byteSize()))
                        .mapToLong(run -> way.byPages ? run.pages(way.pageBytes()) : run.byteSize())
                        .sum();
    }

    /// @param isAtOnce whether what waits for another stream can't serve
    private List<Run> idleRuns(SegmentMemory segment, boolean isAtOnce) {
        List<Run> runs = new ArrayList<>();
        long from = segment.address();
        for (SegmentMemory.Block block : segment.blocks()) {
            if (live.containsKey(block.address()) || (isAtOnce && block.state() == SegmentMemory.State.WAITING)) {
                runs.add(new Run(from, block.address()));
                from = block.address() + block.byteSize();
            }
        }
        runs.add(new Run(from, segment.address() + segment.byteSize()));
        return runs;
    }
}
