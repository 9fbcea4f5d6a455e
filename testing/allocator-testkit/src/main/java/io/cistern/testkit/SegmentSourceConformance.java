package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.RegisterExtension;

/// Tests that every segment source must pass, whether it provides ranges or pages. To test a source, implement
/// one method:
///
/// ```java
/// class MySourceConformanceTests extends SegmentSourceConformance {
///     protected String spec() { return "mine"; }
/// }
/// ```
///
/// The source is opened as an allocator opens it, on a new simulated GPU for each test. A subclass that overrides
/// [#openDriver()] with a real driver runs the same tests on a GPU. After every test all memory must be back with
/// the driver, and the simulated GPU must have reported no misuse.
///
/// The suite maps the handles of a [io.cistern.spi.PageSource] and uses that memory, as an allocator does.
@Timeout(180)
public abstract class SegmentSourceConformance {
    private static final int DEVICE = 0;
    private static final int SECOND = 1;
    private static final long MIB = 1L << 20;
    private static final int THREADS = 8;

    /// A real driver takes some memory of its own meanwhile, such as local memory of kernels.
    private static final long REAL_TOLERANCE = 64 * MIB;

    private final LiveBlocks live = new LiveBlocks();
    private final BuildingBlocks buildingBlocks = new BuildingBlocks();
    private final AtomicInteger nextSeed = new AtomicInteger(1_000_003);
    private final List<Patterns> patterns = new ArrayList<>();
    private final Deque<SegmentSource> opened = new ArrayDeque<>();
    private long[] freeBefore = {};
    private long[] streams = {};
    private CudaDriver driver;
    private DeviceMemory memory;
    private Allocator holder;
    private SourceMemory source;
    private boolean failed;

    @RegisterExtension
    final AfterTestExecutionCallback outcome =
            test -> failed = test.getExecutionException().isPresent();

    /// Creates the suite; subclasses call this.
    protected SegmentSourceConformance() {}

    /// Returns the source under test as a spec, `NAME` or `NAME:key=value,…`.
    protected abstract String spec();

    /// Opens the driver for one test; the suite closes it.
    ///
    /// @return a new simulated GPU of two devices with 1 GiB each, unless overridden
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    }

    /// Returns the sources that can be opened by name.
    ///
    /// @return those found on the class path or module path, unless overridden
    protected Catalog catalog() {
        return DiscoveredCatalog.find();
    }

    /// Opens the source under test, and holds it open as an allocator does.
    private final class Holder implements AllocatorProvider {
        static final String NAME = "holder-of-a-source";

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            opened.push(context.segments(spec()));
            return new DeviceAllocator() {
                @Override
                public long allocate(long byteSize, int device, long stream) {
                    throw new DeviceOutOfMemoryException(byteSize, device, "nothing is allocated here");
                }

                @Override
                public void free(long address, long byteSize, int device, long stream) {}
            };
        }
    }

    @BeforeEach
    final void openSource() {
        driver = openDriver();
        int devices = driver.devices().count();
        freeBefore = new long[devices];
        streams = new long[devices];
        for (int device = 0; device < devices; device++) {
            patterns.add(new Patterns(driver, device));
            streams[device] = driver.streams().create(device);
        }
        for (int device = 0; device < devices; device++) {
            freeBefore[device] = driver.memory().freeBytes(device);
        }
        Catalog found = catalog();
        memory = DeviceMemory.builder(driver)
                .catalog(buildingBlocks.around(Catalog.of(
                        List.of(new Holder()),
                        found.entries().stream()
                                .filter(entry -> entry.kind() == Catalog.Kind.SOURCE
                                        && entry.problem().isEmpty())
                                .map(entry -> found.source(entry.name()))
                                .toList())))
                .open();
        holder = memory.open(Holder.NAME);
        source = SourceMemory.of(opened.getFirst(), driver);
    }

    @AfterEach
    final void closeSource() {
        try (CudaDriver closedLast = driver) {
            giveEverythingBack();
            buildingBlocks.assertSound();
            if (closedLast instanceof SimulatedGpu gpu) {
                Findings.assertNone("misuse seen by the simulated GPU", gpu.misuses().stream());
            }
        }
    }

    /// After a failure this may fail as well, which says nothing more.
    private void giveEverythingBack() {
        try {
            live.all().forEach(this::release);
            memory.close();
            for (int device = 0; device < freeBefore.length; device++) {
                long lost = freeBefore[device] - driver.memory().freeBytes(device);
                assertThat(lost)
                        .as(
                                "%s bytes of device %s are missing after the close; likely cause: a release of %s did not"
                                        + " give them back, or a call that failed kept what it had obtained",
                                lost, device, spec())
                        .isLessThanOrEqualTo(driver.simulated() ? 0 : REAL_TOLERANCE);
                driver.streams().destroy(device, streams[device]);
            }
            patterns.forEach(Patterns::close);
        } catch (RuntimeException | AssertionError followUp) {
            if (!failed) {
                throw followUp;
            }
        }
    }

    private Block obtain(long byteSize, int device) {
        return checked(source.obtain(byteSize, device), byteSize, SourceMemory.ALIGNMENT, device);
    }

    /// Checks what a source returned, and writes a pattern into all of it.
    private Block checked(Segment segment, long byteSize, long byteAlignment, int device) {
        assertThat(segment.address()).as("address for %s bytes", byteSize).isNotZero();
        assertThat(segment.address() % byteAlignment)
                .as("0x%x is not a multiple of %s", segment.address(), byteAlignment)
                .isZero();
        assertThat(segment.byteSize()).as("bytes of the segment").isGreaterThanOrEqualTo(byteSize);
        assertThat(segment.device()).as("device of the segment").isEqualTo(device);
        Block block =
                new Block(segment.address(), segment.byteSize(), device, streams[device], nextSeed.addAndGet(7919));
        AddressRange range = driver.memory().range(device, block.address());
        assertThat(block.end())
                .as(
                        "end of 0x%x, which %s returned with %s bytes; the driver's range there has %s",
                        block.address(), spec(), block.byteSize(), range.byteSize())
                .isLessThanOrEqualTo(range.address() + range.byteSize());
        live.add(block, spec());
        patterns.get(device).write(block.address(), block.byteSize(), block.seed(), block.stream());
        return block;
    }

    private @Nullable Block tryObtain(long byteSize, int device) {
        try {
            return obtain(byteSize, device);
        } catch (DeviceOutOfMemoryException full) {
            assertThat(full.device()).as("device in " + full).isEqualTo(device);
            assertThat(full.byteSize()).as("bytes in " + full).isGreaterThanOrEqualTo(byteSize);
            return null;
        }
    }

    /// Verifies a block, waits for its stream, and gives it back.
    private void release(Block block) {
        verify(block);
        live.remove(block);
        assertThat(source.giveBack(segment(block)))
                .as("whether the source takes 0x%x back, which nobody else uses", block.address())
                .isTrue();
    }

    private void verify(Block block) {
        patterns.get(block.device()).verify(block.address(), block.byteSize(), block.seed(), block.stream());
        Findings.assertNone(
                "two segments of " + spec() + " share memory, or memory went back too early",
                patterns.get(block.device()).mismatches().stream());
    }

    private static Segment segment(Block block) {
        return new Segment(block.address(), block.byteSize(), block.device());
    }

    @Test
    void everySizeIsMemoryOfItsOwn() {
        for (long byteSize = 1; byteSize <= 64 * MIB; byteSize = byteSize * 5 / 2 + 1) {
            obtain(byteSize, DEVICE);
        }
        live.all().forEach(this::verify);
    }

    @Test
    void anAlignmentIsKeptOrRefused() {
        assumeTrue(opened.getFirst() instanceof RangeSource, "the allocator that maps pages aligns them");
        RangeSource ranges = (RangeSource) opened.getFirst();
        for (long byteAlignment = 256; byteAlignment <= 4 * MIB; byteAlignment *= 4) {
            for (long byteSize : new long[] {1, 100_000, 3 * MIB}) {
                try {
                    checked(ranges.acquire(byteSize, byteAlignment, DEVICE), byteSize, byteAlignment, DEVICE);
                } catch (AllocatorContractException ignored) {
                    throw ignored;
                } catch (RuntimeException refused) {
                    assertThat(byteAlignment).as("refused: " + refused).isGreaterThan(SourceMemory.ALIGNMENT);
                }
            }
        }
    }

    @Test
    void whatWasReleasedServesAgain() {
        long byteSize = driver.memory().freeBytes(DEVICE) / 4;
        for (int i = 0; i < 8; i++) {
            release(obtain(byteSize, DEVICE));
        }
    }

    @Test
    void aFullDeviceRefusesAndIsFilledAgainAsFullAsBefore() {
        long byteSize = driver.memory().freeBytes(DEVICE) / 16;
        int first = fill(byteSize).size();
        assertThat(first)
                .as("segments of a sixteenth of the free memory that fit at once")
                .isGreaterThanOrEqualTo(12);
        live.all().forEach(this::release);
        assertThat(fill(byteSize).size())
                .as("segments of %s bytes that fit after %s were released", byteSize, first)
                .isGreaterThanOrEqualTo(first);
    }

    /// Managed memory may be more than a device has.
    private List<Block> fill(long byteSize) {
        List<Block> blocks = new ArrayList<>();
        for (Block block = tryObtain(byteSize, DEVICE); block != null && blocks.size() < 16; ) {
            blocks.add(block);
            block = tryObtain(byteSize, DEVICE);
        }
        return blocks;
    }

    @Test
    void moreThanThereIsIsOutOfMemoryAndTheNextRequestIsServed() {
        for (long byteSize : new long[] {1L << 46, 1L << 50}) {
            DeviceOutOfMemoryException refused =
                    catchThrowableOfType(DeviceOutOfMemoryException.class, () -> source.obtain(byteSize, DEVICE));
            assertThat(refused).as("%s bytes", byteSize).isNotNull();
            assertThat(refused.byteSize()).isGreaterThanOrEqualTo(byteSize);
            assertThat(refused.device()).isEqualTo(DEVICE);
            release(obtain(MIB, DEVICE));
        }
    }

    @Test
    void memoryIsOfTheDeviceAskedFor() {
        assumeTrue(driver.devices().count() > 1, "needs two devices, there is one");
        obtain(MIB, DEVICE);
        long untouched = driver.memory().freeBytes(DEVICE);
        for (int i = 1; i <= 4; i++) {
            obtain(i * 20L * MIB, SECOND);
        }
        assertThat(driver.memory().freeBytes(DEVICE))
                .as("free bytes of the device that nobody asked")
                .isEqualTo(untouched);
        obtain(MIB, DEVICE);
    }

    @Test
    void threadsGetMemoryOfTheirOwn() throws InterruptedException {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int device = i % freeBefore.length;
            threads.add(Thread.ofPlatform()
                    .uncaughtExceptionHandler((_, failure) -> failures.add(failure))
                    .start(() -> obtainAndRelease(device)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Findings.assertNone("a thread failed", failures.stream());
    }

    private void obtainAndRelease(int device) {
        for (int i = 0; i < 20; i++) {
            Block first = obtain(1 + i * 100_003L, device);
            Block second = obtain(MIB, device);
            release(first);
            release(second);
        }
    }

    @Test
    void aSourceThatClosesLeavesAnotherAlone() {
        Allocator another = memory.open(Holder.NAME);
        SourceMemory second = SourceMemory.of(opened.getFirst(), driver);
        Block kept = obtain(3 * MIB, DEVICE);
        Segment gone = second.obtain(3 * MIB, DEVICE);
        assertThat(second.giveBack(gone)).isTrue();
        another.close();
        verify(kept);
        release(obtain(3 * MIB, DEVICE));
        assertThat(holder.isDrained()).isFalse();
    }

    /// Memory that the source did not take back stays as it was, and it takes it back once the driver does.
    @Test
    void memoryThatTheDriverRefusesToTakeBackIsTakenBackLater() {
        SimulatedGpu gpu = simulated();
        for (DriverCall call : FaultContractTests.RETURNING) {
            if (source.calls().contains(call)) {
                Block block = obtain(5 * MIB, DEVICE);
                gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
                boolean taken = tryGiveBack(block);
                gpu.faults().clear();
                if (taken) {
                    live.remove(block);
                } else if (source.keepsContents()) {
                    release(block);
                } else {
                    live.remove(block);
                    assertThat(source.giveBack(segment(block)))
                            .as("after " + call + " was refused")
                            .isTrue();
                }
            }
        }
    }

    private boolean tryGiveBack(Block block) {
        driver.devices().synchronize(block.device());
        try {
            return source.giveBack(segment(block));
        } catch (RuntimeException refused) {
            assertThat(FaultContractTests.ofDriver(refused).result()).isEqualTo(CudaResult.UNKNOWN);
            return false;
        }
    }

    @Test
    void aRequestThatTheDriverRefusesLosesNothing() {
        SimulatedGpu gpu = simulated();
        for (DriverCall call : source.calls()) {
            for (CudaResult result : new CudaResult[] {CudaResult.OUT_OF_MEMORY, CudaResult.UNKNOWN}) {
                for (int after = 0; after < 3; after++) {
                    gpu.faults().failOn(call, after, 1, result);
                    refused(call, result);
                    gpu.faults().clear();
                    release(obtain(5 * MIB, DEVICE));
                }
            }
        }
    }

    private void refused(DriverCall call, CudaResult result) {
        try {
            Segment segment = source.obtain(5 * MIB, DEVICE);
            simulated().faults().clear();
            assertThat(source.giveBack(segment)).isTrue();
        } catch (DeviceOutOfMemoryException typed) {
            assertThat(typed.byteSize()).as("bytes in " + typed).isPositive();
        } catch (RuntimeException thrown) {
            assertThat(FaultContractTests.ofDriver(thrown).call())
                    .as("the call that failed")
                    .isEqualTo(call);
            assertThat(result == CudaResult.OUT_OF_MEMORY && FaultContractTests.OBTAINING.contains(call))
                    .as("out of memory must be a DeviceOutOfMemoryException, not " + thrown)
                    .isFalse();
        }
    }

    private SimulatedGpu simulated() {
        assumeTrue(driver instanceof SimulatedGpu, "a real driver does not fail on demand");
        return (SimulatedGpu) driver;
    }

    private SourceMemory.Pages pages() {
        assumeTrue(source instanceof SourceMemory.Pages, "a source of ranges has no handles");
        return (SourceMemory.Pages) source;
    }

    @Test
    void traitsStayAndSayHowMemoryIsMapped() {
        for (int device = 0; device < freeBefore.length; device++) {
            PageTraits traits = pages().source().traits(device);
            assertThat(Long.bitCount(traits.granularity()))
                    .as("granularity, a power of two: " + traits)
                    .isOne();
            assertThat(traits.location()).matches("device|host|host_numa:\\d+");
            assertThat(traits.handleType()).isIn("none", "posix_fd", "fabric");
            assertThat(pages().source().accessors(device)).isNotEmpty();
            obtain(1, device);
            assertThat(pages().source().traits(device)).isEqualTo(traits);
        }
    }

    @Test
    void aHandleIsOneMemoryAtAllItsMappingsUntilTheLastIsGone() {
        SourceMemory.Pages pages = pages();
        long byteSize = 3 * pages.source().traits(DEVICE).granularity();
        long handle = pages.source().create(byteSize, DEVICE);
        Segment one = pages.map(handle, byteSize, DEVICE);
        Segment other = pages.map(handle, byteSize, DEVICE);
        patterns.getFirst().write(one.address(), byteSize, 17, streams[DEVICE]);
        assertThat(pages.unmap(one)).isTrue();
        pages.source().release(handle, byteSize, DEVICE);
        patterns.getFirst().verify(other.address(), byteSize, 17, streams[DEVICE]);
        assertThat(patterns.getFirst().mismatches())
                .as("contents at the other address")
                .isEmpty();
        assertThat(pages.unmap(other)).isTrue();
    }
}
