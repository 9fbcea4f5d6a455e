package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.DeviceMemory;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools whose memory another device's kernels read and write, and events that are reported for each device.
/// Needs two devices with peer access.
@Timeout(120)
public abstract class PoolsBetweenDevices {
    private static final long MIB = 1 << 20;

    /// Several pages, large or small.
    private static final long LARGE = 100 * MIB;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Side[] sides = new Side[2];

    /// One device, with a stream and the counter of its kernels.
    private record Side(int device, long stream, MemoryKernels kernels, MemorySegment counter) {}

    /// Runs the tests on a driver, and closes it after the test.
    protected PoolsBetweenDevices(CudaDriver driver) {
        this.driver = driver;
        memory = DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
    }

    /// Returns the driver on which the tests run.
    protected final CudaDriver driver() {
        return driver;
    }

    @BeforeEach
    void openBoth() {
        assumeTrue(driver.devices().count() > 1, "needs two devices, there is one");
        assumeTrue(
                driver.peers().canAccess(0, 1) && driver.peers().canAccess(1, 0), "the devices don't see each other");
        for (int device = 0; device < 2; device++) {
            sides[device] = new Side(
                    device,
                    driver.streams().create(device),
                    MemoryKernels.load(driver, device),
                    driver.memory().allocateHost(device, Long.BYTES));
        }
    }

    @AfterEach
    void closeAll() {
        memory.close();
        for (Side side : sides) {
            if (side != null) {
                driver.streams().destroy(side.device, side.stream);
                driver.memory().freeHost(side.device, side.counter);
                side.kernels.close();
            }
        }
        driver.close();
    }

    private long allocate(MemoryPool pool, int home, long byteSize) {
        long address = pool.allocate(byteSize, home, sides[home].stream);
        driver.streams().synchronize(home, sides[home].stream);
        return address;
    }

    private void free(int home, long... blocks) {
        for (long block : blocks) {
            memory.free(block, sides[home].stream);
        }
    }

    /// Writes with a device's kernel, and waits for it.
    private void write(int device, long address, long byteSize, int first) {
        Side side = sides[device];
        side.kernels.writeSequence(address, byteSize / Integer.BYTES, first, side.stream);
        driver.streams().synchronize(device, side.stream);
    }

    /// Checks contents with a device's kernel.
    private void assertReads(int device, long address, long byteSize, int first) {
        Side side = sides[device];
        side.counter.set(ValueLayout.JAVA_LONG, 0, 0);
        side.kernels.countSequenceMismatches(
                address, byteSize / Integer.BYTES, first, side.counter.address(), side.stream);
        driver.streams().synchronize(device, side.stream);
        assertThat(side.counter.get(ValueLayout.JAVA_LONG, 0)).as("wrong words").isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:page_size=2MiB", "async"})
    void kernelsOfEitherDeviceUseWhatAPoolHasAndWhatComes(String spec) {
        try (MemoryPool pool = MemoryPool.builder(memory).spec(spec).open()) {
            long before = allocate(pool, 0, 3 * MIB);
            pool.openBetween(0, 1);
            long after = allocate(pool, 0, LARGE);
            long back = allocate(pool, 1, LARGE);
            write(1, before, 3 * MIB, 1);
            write(1, after, LARGE, 2);
            write(0, back, LARGE, 3);
            assertReads(0, before, 3 * MIB, 1);
            assertReads(0, after, LARGE, 2);
            assertReads(1, back, LARGE, 3);
            assertReads(0, back, LARGE, 3);
            driver.copies().onDevice(1, back, after, LARGE, sides[1].stream);
            assertReads(1, back, LARGE, 2);
            free(0, before, after);
            free(1, back);
        }
    }

    /// Uses fills, which the driver checks when they are enqueued; kernels would break the device's context.
    @ParameterizedTest
    @ValueSource(strings = {"caching", "async"})
    void anotherPoolsMemoryIsNotOpened(String spec) {
        try (MemoryPool open = MemoryPool.builder(memory).spec(spec).open();
                MemoryPool closed = MemoryPool.builder(memory).spec(spec).open()) {
            open.openTo(0, 1);
            long reached = allocate(open, 0, MIB);
            long notReached = allocate(closed, 0, MIB);
            driver.copies().fillBytes(1, reached, (byte) 1, MIB, sides[1].stream);
            assertThatThrownBy(() -> driver.copies().fillBytes(1, notReached, (byte) 1, MIB, sides[1].stream))
                    .isInstanceOf(CudaException.class);
            driver.streams().synchronize(1, sides[1].stream);
            free(0, reached, notReached);
        }
    }

    @Test
    void whatIsOpenedIsOpenAfterSleeping() {
        try (MemoryPool pool = MemoryPool.builder(memory).spec("caching").open()) {
            long block = allocate(pool, 0, LARGE);
            pool.openTo(0, 1);
            write(1, block, LARGE, 5);
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            assertReads(1, block, LARGE, 5);
            write(1, block, LARGE, 6);
            assertReads(0, block, LARGE, 6);
            free(0, block);
        }
    }

    /// Idle pages of another stream serve the pool, at addresses that existed before the pool opened
    /// and at new ones.
    @Test
    void movedPagesAreOpenUnderAllTheirAddresses() {
        try (MemoryPool pool =
                MemoryPool.builder(memory).spec("caching:fit=tight").open()) {
            long other = driver.streams().create(0);
            long first = pool.allocate(2 * LARGE, 0, sides[0].stream);
            memory.free(first, sides[0].stream);
            driver.streams().synchronize(0, sides[0].stream);
            long moved = pool.allocate(LARGE, 0, other);
            pool.openTo(0, 1);
            write(1, moved, LARGE, 7);
            memory.free(moved, other);
            driver.streams().synchronize(0, other);
            long again = allocate(pool, 0, 2 * LARGE);
            write(1, again, 2 * LARGE, 8);
            assertReads(0, again, 2 * LARGE, 8);
            free(0, again);
            memory.streamClosing(0, other);
            driver.streams().destroy(0, other);
        }
    }

    @Test
    void thresholdsAreEachDevicesOwn() throws InterruptedException {
        Queue<Integer> told = new ConcurrentLinkedQueue<>();
        try (MemoryPool pool = MemoryPool.builder(memory).spec("caching").open()) {
            for (int device = 0; device < 2; device++) {
                memory.listeners()
                        .onThreshold(device, MemoryMeasure.RESERVED, LARGE / 2, (at, threshold, bytes) -> told.add(at));
            }
            long block = allocate(pool, 1, LARGE);
            for (int i = 0; i < 5000 && told.isEmpty(); i++) {
                Thread.sleep(1);
            }
            assertThat(told).containsExactly(1);
            free(1, block);
        }
    }

    /// The system decides whether there is a budget, so there may be no report.
    @Test
    void budgetsOfEachDeviceAreListenedTo() {
        for (int device = 0; device < 2; device++) {
            boolean tells = driver.capabilities()
                    .devices()
                    .get(device)
                    .supports(DriverFeature.BUDGET_NOTIFICATION)
                    .supported();
            if (tells) {
                Registration first = listenToBudget(device);
                Registration second = listenToBudget(device);
                first.close();
                second.close();
            } else {
                int mute = device;
                assertThatThrownBy(() -> listenToBudget(mute)).isInstanceOf(CudaException.class);
            }
        }
    }

    private Registration listenToBudget(int device) {
        return memory.listeners().onOverBudget(device, (at, _) -> memory.trim(at, 0, TrimMode.WITHOUT_WAITING));
    }
}
