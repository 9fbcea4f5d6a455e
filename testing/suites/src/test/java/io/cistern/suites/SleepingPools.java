package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.SleepMode;
import java.util.ArrayDeque;
import java.util.Deque;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools that sleep and wake; kernels and graphs check their contents.
@Timeout(120)
public abstract class SleepingPools extends GraphFixture {
    private static final String SMALL_PAGES = "caching:page_size=2MiB";
    private static final String USUAL_PAGES = "caching";

    /// Several batches of copies; on a simulated GPU no more than two, since its copies take the host's time.
    private final long manyBytes;

    /// The most memory that stays free when the device is filled.
    private static final long GRAIN = 32 * MIB;

    /// Runs the tests on a driver, and closes it after the test.
    protected SleepingPools(CudaDriver driver) {
        super(driver);
        manyBytes = driver.simulated() ? 72 * MIB : 200 * MIB;
    }

    /// Returns the driver on which the tests run.
    protected final CudaDriver driver() {
        return driver;
    }

    private MemoryPool pool(String spec) {
        return MemoryPool.builder(memory).spec(spec).open();
    }

    private long written(MemoryPool pool, long byteSize, int first) {
        long block = pool.allocate(byteSize, DEVICE, stream);
        write(block, byteSize, first, stream);
        return block;
    }

    @ParameterizedTest
    @ValueSource(strings = {USUAL_PAGES, SMALL_PAGES})
    void contentsComeBackToTheirAddresses(String spec) {
        try (MemoryPool pool = pool(spec)) {
            long large = written(pool, manyBytes, 1);
            long gap = written(pool, 3 * MIB, 2);
            long middle = written(pool, 5 * MIB, 3);
            long small = written(pool, 4 * KIB, 4);
            memory.free(gap, stream);
            for (int i = 0; i < 3; i++) {
                pool.sleep(SleepMode.KEEP);
                assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
                pool.wake();
                assertHolds(large, manyBytes, 1);
                assertHolds(middle, 5 * MIB, 3);
                assertHolds(small, 4 * KIB, 4);
            }
            memory.free(large, stream);
            memory.free(middle, stream);
            memory.free(small, stream);
        }
    }

    @Test
    void itsMemoryIsTheDriversMeanwhile() {
        try (MemoryPool pool = pool(USUAL_PAGES)) {
            long block = written(pool, manyBytes, 1);
            driver.streams().synchronize(DEVICE, stream);
            long before = driver.memory().freeBytes(DEVICE);
            pool.sleep(SleepMode.DROP);
            assertThat(driver.memory().freeBytes(DEVICE) - before).isGreaterThanOrEqualTo(manyBytes);
            assertThatThrownBy(() -> pool.allocate(1, DEVICE, stream)).isInstanceOf(MemoryAsleepException.class);
            pool.wake();
            write(block, manyBytes, 8, stream);
            assertHolds(block, manyBytes, 8);
            memory.free(block, stream);
        }
    }

    @Test
    void workThatWasGivenBeforeIsDoneBeforeItSleeps() {
        try (MemoryPool pool = pool(USUAL_PAGES)) {
            long source = written(pool, manyBytes, 5);
            long target = pool.allocate(manyBytes, DEVICE, other);
            follow(other, stream);
            for (int i = 0; i < 20; i++) {
                copy(target, source, manyBytes, other);
            }
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            assertHolds(target, manyBytes, 5);
            memory.free(source, stream);
            memory.free(target, other);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {USUAL_PAGES, SMALL_PAGES})
    void aGraphOverItIsLaunchedAgainAfterWaking(String spec) throws InterruptedException {
        try (MemoryPool pool = pool(spec)) {
            long weights = written(pool, manyBytes, 7);
            long result = written(pool, manyBytes, 0);
            long stamp = written(pool, MIB, 0);
            GraphCapture capture = capture();
            try (Scope _ = pool.enter()) {
                long scratch = allocate(manyBytes);
                copy(scratch, weights, manyBytes, stream);
                copy(result, scratch, manyBytes, stream);
                write(stamp, MIB, 77, stream);
                memory.free(scratch, stream);
            }
            long executable = executable(capture);
            launch(executable);
            for (int i = 0; i < 2; i++) {
                pool.sleep(SleepMode.KEEP);
                assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
                pool.wake();
                write(result, manyBytes, 1000 + i, stream);
                write(stamp, MIB, 1000 + i, stream);
                launch(executable);
                assertHolds(stamp, MIB, 77); // by a kernel
                assertHolds(result, manyBytes, 7); // by copies
            }
            destroy(executable);
            awaitGone(capture.memory());
            memory.free(weights, stream);
            memory.free(result, stream);
            memory.free(stamp, stream);
        }
    }

    @Test
    void withoutMemoryItSleepsOnAndWakesLater() {
        try (MemoryPool pool = pool(USUAL_PAGES)) {
            long block = written(pool, manyBytes, 9);
            pool.sleep(SleepMode.KEEP);
            Deque<Long> others = fillDevice();
            assertThatThrownBy(pool::wake).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(pool.isAsleep()).isTrue();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            others.forEach(other -> driver.memory().free(DEVICE, other));
            pool.wake();
            assertHolds(block, manyBytes, 9);
            memory.free(block, stream);
        }
    }

    /// Takes so much memory that less is free than the pool needs.
    private Deque<Long> fillDevice() {
        Deque<Long> taken = new ArrayDeque<>();
        long size = driver.memory().freeBytes(DEVICE);
        while (size >= GRAIN) {
            try {
                taken.push(driver.memory().allocate(DEVICE, size));
            } catch (io.cistern.cuda.CudaException tooMuch) {
                size /= 2;
            }
        }
        return taken;
    }
}
