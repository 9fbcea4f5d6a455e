package io.cistern.suites.races;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.suites.WatchedDevice;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Races of a stream of device 0 with one of device 1, each also in a correct version. Device 1 reaches memory of
/// device 0 through an open pool. Needs two devices with peer access.
@Timeout(120)
@ResourceLock(Resources.SYSTEM_PROPERTIES)
public abstract class RacesBetweenDevices {
    private static final long BYTES = 1 << 20;

    private final WatchedDevice device;
    private long first;
    private long second;

    enum Race {
        /// Device 1 reads what a copy from device 0 still writes.
        COPY_NOT_AWAITED(Kind.RACE),
        /// Both devices write one block.
        WRITES_OF_BOTH(Kind.RACE),
        /// Device 0 frees and reuses a block that device 1 still reads.
        FREE_BEFORE_THE_OTHER_ENDS(Kind.FREE_BEFORE_USE_ENDS, Kind.REUSED_TOO_EARLY);

        final Kind[] kinds;

        Race(Kind... kinds) {
            this.kinds = kinds;
        }
    }

    /// Runs the tests on a driver, and closes it after the test.
    protected RacesBetweenDevices(CudaDriver driver) {
        device = new WatchedDevice(
                "caching", driver, Math.min(2, driver.devices().count()));
    }

    @AfterEach
    void close() {
        device.close();
    }

    @ParameterizedTest
    @EnumSource
    void isFoundAndNotInTheCorrectVersion(Race race) {
        assumeTrue(device.driver.devices().count() > 1, "needs two devices, there is one");
        assumeTrue(device.driver.peers().canAccess(1, 0), "device 1 can't access device 0");
        try (MemoryPool pool = MemoryPool.builder(device.memory).spec("caching").open();
                MemoryKernels kernels = MemoryKernels.load(device.driver, 1)) {
            pool.openTo(0, 1);
            device.run(() -> {
                assertThat(run(race, pool, kernels, true)).isEmpty();
                assertThat(run(race, pool, kernels, false)).containsExactly(race.kinds);
            });
        }
    }

    private List<Kind> run(Race race, MemoryPool pool, MemoryKernels kernels, boolean isCorrect) {
        first = device.heldStream(0);
        second = device.heldStream(1);
        long block = pool.allocate(BYTES, 0, first);
        long ofSecond = device.memory.allocate(BYTES, 1, second);
        orderIf(true);
        device.driver.copies().fillBytes(0, block, (byte) 1, BYTES, first);
        switch (race) {
            case COPY_NOT_AWAITED -> copyNotAwaited(block, ofSecond, isCorrect);
            case WRITES_OF_BOTH -> writesOfBoth(block, kernels, isCorrect);
            case FREE_BEFORE_THE_OTHER_ENDS -> block = freeBeforeTheOtherEnds(pool, block, ofSecond, isCorrect);
        }
        List<Kind> found =
                device.hazards.list().stream().map(StreamHazard::kind).toList();
        device.finish();
        device.memory.free(block, first);
        device.memory.free(ofSecond, second);
        device.reset();
        return found;
    }

    private void copyNotAwaited(long block, long ofSecond, boolean isCorrect) {
        device.order(1, second, 0, first);
        device.driver.copies().betweenDevices(1, ofSecond, 0, block, BYTES, first);
        orderIf(isCorrect);
        device.driver.copies().fillBytes(1, ofSecond, (byte) 2, BYTES, second);
    }

    private void writesOfBoth(long block, MemoryKernels kernels, boolean isCorrect) {
        orderIf(isCorrect);
        kernels.writeSequence(block, BYTES / Integer.BYTES, 1, second);
    }

    /// @return the block that is allocated afterwards
    private long freeBeforeTheOtherEnds(MemoryPool pool, long block, long ofSecond, boolean isCorrect) {
        orderIf(true);
        device.driver.copies().onDevice(1, ofSecond, block, BYTES, second);
        if (isCorrect) {
            device.order(1, second, 0, first);
        }
        device.memory.free(block, first);
        long next = pool.allocate(BYTES, 0, first);
        device.driver.copies().fillBytes(0, next, (byte) 3, BYTES, first);
        return next;
    }

    private void orderIf(boolean isCorrect) {
        if (isCorrect) {
            device.order(0, first, 1, second);
        }
    }
}
