package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import io.cistern.hazards.HazardObserver;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazards;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.RegisterExtension;

/// Runs one contract of the conformance suite. Before each test it opens driver, device memory and allocator. After
/// each test it verifies and frees the remaining blocks, announces the end of the streams, destroys them, closes
/// everything, and checks that no memory is missing.
///
/// Invariant at the end of every test: `free bytes after = free bytes before`, as many driver objects as before, and no
/// misuse was reported.
@Timeout(180)
abstract class ConformanceContractTests {
    static final int DEVICE = 0;
    static final long KIB = 1L << 10;
    static final long MIB = 1L << 20;

    /// A real driver takes some memory of its own meanwhile, such as local memory of kernels.
    private static final long REAL_TOLERANCE = 64 * MIB;

    /// An allocator may wait for running work in a free, as `cuMemFree` does, so a latch is released after this
    /// time. It bounds how long a test takes, never whether it passes.
    private static final long LONGEST_HOLD_MILLIS = 150;

    private final AllocatorConformance suite;
    private final AtomicInteger nextSeed = new AtomicInteger(1_000_003);
    private final List<Patterns> patterns = new ArrayList<>();
    private final Deque<StreamLatch> latches = new ArrayDeque<>();
    private final Deque<OwnedStream> streams = new ArrayDeque<>();
    final LiveBlocks live = new LiveBlocks();
    private final BlockHistory history = new BlockHistory();
    private long[] freeBefore = {};
    private Map<String, Long> objectsBefore = Map.of();
    private final BuildingBlocks buildingBlocks = new BuildingBlocks();
    private boolean memoryMayBeLost;
    private boolean failed;

    @RegisterExtension
    final AfterTestExecutionCallback outcome =
            test -> failed = test.getExecutionException().isPresent();

    CudaDriver driver;
    DeviceMemory memory;
    Allocator allocator;

    private record OwnedStream(int device, long stream) {}

    ConformanceContractTests(AllocatorConformance suite) {
        this.suite = suite;
    }

    @BeforeEach
    void openAllocator() {
        HazardObserver streamOrder = new HazardObserver();
        driver = streamOrder.around(suite.openDriver());
        objectsBefore = driverObjects();
        freeBefore = new long[driver.devices().count()];
        for (int device = 0; device < freeBefore.length; device++) {
            patterns.add(new Patterns(driver, device));
        }
        for (int device = 0; device < freeBefore.length; device++) {
            freeBefore[device] = driver.memory().freeBytes(device);
        }
        memory = DeviceMemory.builder(driver)
                .catalog(buildingBlocks.around(suite.catalog()))
                .open();
        streamOrder.observe(memory);
        allocator = suite.open(memory);
    }

    @AfterEach
    void closeAllocator() {
        try (CudaDriver closedLast = driver) {
            giveEverythingBack();
            buildingBlocks.assertSound();
            assertNoMisuse(closedLast.original());
            assertNone(StreamHazards.of(memory).orElseThrow().list().stream().map(this::text));
        }
    }

    /// After a failure this may fail as well, which says nothing more.
    private void giveEverythingBack() {
        try {
            latches.forEach(StreamLatch::close);
            live.all().forEach(block -> free(block, block.stream()));
            assertContents();
            streams.forEach(this::close);
            memory.close();
            assertThat(memory.allocators()).as("allocators still open").isEmpty();
            assertNothingLost();
            patterns.forEach(Patterns::close);
            assertNoObjectLeft();
        } catch (RuntimeException | AssertionError followUp) {
            if (!failed) {
                throw followUp;
            }
        }
    }

    private String text(StreamHazard hazard) {
        return hazard.kind() == StreamHazard.Kind.REUSED_TOO_EARLY
                ? "%s gave 0x%x to %s, though %s: %s"
                        .formatted(
                                allocator.name(),
                                hazard.address(),
                                name(hazard.second()),
                                unawaited(hazard.first(), hazard.second().stream()),
                                hazard)
                : "memory used where no stream orders it: " + hazard;
    }

    private static String name(StreamHazard.Place call) {
        return BlockHistory.name(call.stream(), call.thread());
    }

    /// Says what has not happened before memory went to another stream, and what the allocator should do.
    private static String unawaited(StreamHazard.Place freed, long receiver) {
        return freed.stream() == receiver && receiver != Streams.PER_THREAD_DEFAULT
                ? "an ended stream that had the same handle has not passed its free; streamClosing() must forget what is"
                        + " kept for the handle, and a free that names an ended stream must keep the block until all work so"
                        + " far on the device is done (StreamOrder.recordAll)"
                : name(freed) + " has not passed its free; " + BlockHistory.remedy(freed.stream(), receiver);
    }

    private void close(OwnedStream owned) {
        memory.streamClosing(owned.device(), owned.stream());
        driver.streams().destroy(owned.device(), owned.stream());
    }

    private void assertNothingLost() {
        if (!memoryMayBeLost) {
            assertNothingLost("keeps freed memory, and its close() does not give it back");
        }
    }

    /// Each fence is an event, and each pool, stream and address range an object of the driver.
    private void assertNoObjectLeft() {
        if (!memoryMayBeLost) {
            assertThat(driverObjects())
                    .as(
                            "driver objects; likely cause: %s creates some that its close() does not release",
                            allocator.name())
                    .isEqualTo(objectsBefore);
        }
    }

    /// Returns how many objects of each kind the driver has; none is known of a real driver.
    final Map<String, Long> driverObjects() {
        return driver.original() instanceof SimulatedGpu gpu ? gpu.heldObjects() : Map.of();
    }

    /// Checks that all memory is back with the driver. All allocators are closed.
    ///
    /// @param cause what the allocator likely does wrong
    final void assertNothingLost(String cause) {
        for (int device = 0; device < freeBefore.length; device++) {
            long lost = freeBefore[device] - driver.memory().freeBytes(device);
            assertThat(lost)
                    .as(
                            "%s bytes of device %s did not come back; likely cause: %s %s",
                            lost, device, allocator.name(), cause)
                    .isLessThanOrEqualTo(driver.simulated() ? 0 : REAL_TOLERANCE);
        }
    }

    /// Closes the allocator, and those that it is built on.
    final void closeAllocators() {
        List.copyOf(memory.allocators()).forEach(Allocator::close);
    }

    /// Opens the allocator again.
    final void reopenAllocator() {
        allocator = suite.open(memory);
    }

    /// Returns the bytes that the allocator and those that it is built on hold; each reports its own.
    ///
    /// @return empty if one of them doesn't know
    final OptionalLong reservedBytes() {
        List<OptionalLong> reserved = memory.allocators().stream()
                .map(each -> each.reservedBytes(DEVICE))
                .toList();
        return reserved.stream().allMatch(OptionalLong::isPresent)
                ? OptionalLong.of(
                        reserved.stream().mapToLong(OptionalLong::getAsLong).sum())
                : OptionalLong.empty();
    }

    /// Trims the allocator, and then those that it is built on.
    final void trimAll(TrimMode mode) {
        List.copyOf(memory.allocators()).reversed().forEach(each -> each.trim(DEVICE, 0, mode));
    }

    private static void assertNoMisuse(CudaDriver driver) {
        if (driver instanceof SimulatedGpu gpu) {
            Findings.assertNone("misuse seen by the simulated GPU", gpu.misuses().stream());
        }
    }

    /// Skips the check for lost memory, for tests that make the driver refuse to take memory back.
    void allowLostMemory() {
        memoryMayBeLost = true;
    }

    long stream() {
        return stream(DEVICE);
    }

    long stream(int device) {
        long stream = driver.streams().create(device);
        streams.push(new OwnedStream(device, stream));
        return stream;
    }

    long[] streams(int count) {
        long[] created = new long[count];
        for (int i = 0; i < count; i++) {
            created[i] = stream();
        }
        return created;
    }

    /// Announces the end of a stream and destroys it, as a program should.
    void closeStream(long stream) {
        OwnedStream owned = new OwnedStream(DEVICE, stream);
        streams.remove(owned);
        close(owned);
    }

    StreamLatch latch() {
        StreamLatch latch = new StreamLatch(driver, DEVICE);
        latches.push(latch);
        return latch;
    }

    /// Runs work while a latch holds its streams.
    static void whileHeld(StreamLatch latch, Runnable work) {
        Thread letGo = Thread.ofPlatform().start(() -> {
            try {
                Thread.sleep(LONGEST_HOLD_MILLIS);
                latch.release();
            } catch (InterruptedException done) {
                Thread.currentThread().interrupt();
            }
        });
        try {
            work.run();
        } finally {
            letGo.interrupt();
            latch.release();
        }
    }

    Block allocate(long byteSize, long stream) {
        return allocate(byteSize, DEVICE, stream);
    }

    /// Allocates a block, checks its alignment and that it overlaps no other, and writes a pattern of
    /// its own into it.
    Block allocate(long byteSize, int device, long stream) {
        long address = allocator.allocate(byteSize, device, stream);
        assertThat(address).as("address for %s bytes", byteSize).isNotZero();
        assertThat(address % 256)
                .as("alignment of 0x%x for %s bytes", address, byteSize)
                .isZero();
        Block block = new Block(address, byteSize, device, stream, nextSeed.addAndGet(7919));
        history.allocated(block);
        live.add(block, allocator.name());
        buildingBlocks.handedOut(allocator, address);
        patterns.get(device).write(address, byteSize, block.seed(), stream);
        return block;
    }

    void free(Block block) {
        free(block, block.stream());
    }

    /// Checks on a stream that the pattern is intact, and frees the block on that stream.
    void free(Block block, long stream) {
        verify(block, stream);
        freeUnverified(block, stream);
    }

    /// Frees a block and launches nothing.
    final void freeUnverified(Block block, long stream) {
        freeUnverified(block, stream, false);
    }

    /// Frees a block on a stream that has ended, whose handle may be another stream's now.
    final void freeOnEnded(Block block, long stream) {
        freeUnverified(block, stream, true);
    }

    private void freeUnverified(Block block, long stream, boolean hasEnded) {
        live.remove(block);
        history.freed(block, stream, hasEnded);
        buildingBlocks.freed(block.address());
        try {
            memory.free(block.address(), stream);
        } catch (RuntimeException thrown) {
            throw new AssertionError(
                    "%s threw in free(0x%x, %d bytes) on stream 0x%x; free must not throw: keep the block, and give it back later: %s"
                            .formatted(allocator.name(), block.address(), block.byteSize(), stream, thrown),
                    thrown);
        }
    }

    void verify(Block block, long stream) {
        patterns.get(block.device()).verify(block.address(), block.byteSize(), block.seed(), stream);
    }

    /// Makes another stream read a block, after all work of the block's own stream, and records the use. The
    /// block's own stream does not wait for it.
    void use(Block block, long stream) {
        order(block.stream(), stream);
        verify(block, stream);
        history.used(block, stream);
        memory.recordUse(block.address(), stream);
    }

    /// Frees a block after an event for which no stream waits, and destroys the event.
    void freeAfter(Block block, long stream) {
        long event = driver.events().create(DEVICE);
        driver.events().record(DEVICE, event, stream);
        live.remove(block);
        history.freed(block, stream, false);
        buildingBlocks.freed(block.address());
        memory.freeAfter(block.address(), event);
        driver.events().record(DEVICE, event, block.stream());
        driver.events().destroy(DEVICE, event);
    }

    /// Frees a block on a stream other than its own, after all work of its own stream.
    void handOver(Block block, long stream) {
        order(block.stream(), stream);
        free(block, stream);
    }

    /// Makes the second stream wait for all work enqueued so far on the first.
    void order(long before, long after) {
        long event = driver.events().create(DEVICE);
        driver.events().record(DEVICE, event, before);
        driver.streams().await(DEVICE, after, event);
        driver.events().destroy(DEVICE, event);
    }

    /// Waits for the devices and checks that every verified pattern was intact. A failure names the likely cause.
    void assertContents() {
        for (Patterns device : patterns) {
            assertNone(device.takeMismatches().stream().map(history::explain));
        }
    }

    /// Like [Findings#assertNone], and names the seed, which random tests need in order to fail again.
    private static void assertNone(Stream<String> findings) {
        try {
            Findings.assertNone("", findings);
        } catch (AssertionError found) {
            throw new AssertionError(found.getMessage() + "\n" + Seed.describe(Seed.current()), found);
        }
    }

    void synchronize() {
        driver.devices().synchronize(DEVICE);
    }
}
