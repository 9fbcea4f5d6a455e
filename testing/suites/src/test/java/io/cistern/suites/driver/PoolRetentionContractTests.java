package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// The memory that a pool keeps and gives back: the release threshold at each kind of
/// synchronisation, and `cuMemPoolTrimTo`.
abstract class PoolRetentionContractTests extends DriverContractTests {
    private static final long BLOCK = 64 * MIB;
    private static final long UNLIMITED = -1L;
    private long pool;
    private long stream;

    PoolRetentionContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void openPool() {
        pool = pool();
        stream = stream();
    }

    private long reserved() {
        return driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT);
    }

    private void keep(long bytes) {
        driver.pools().setAttribute(DEVICE, pool, PoolAttribute.RELEASE_THRESHOLD, bytes);
    }

    private long[] allocate(int blocks) {
        long[] addresses = new long[blocks];
        for (int i = 0; i < blocks; i++) {
            addresses[i] = driver.pools().allocateFrom(DEVICE, pool, BLOCK, stream);
        }
        return addresses;
    }

    private void free(long... addresses) {
        for (long address : addresses) {
            driver.pools().free(DEVICE, address, stream);
        }
    }

    @Test
    void withThresholdZeroAStreamSynchronisationGivesAllBack() {
        free(allocate(2));
        synchronize(stream);
        assertThat(reserved()).isZero();
    }

    @Test
    void withThresholdZeroAnEventSynchronisationGivesAllBack() {
        free(allocate(2));
        driver.events().synchronize(DEVICE, eventOn(stream));
        assertThat(reserved()).isZero();
    }

    @Test
    void withThresholdZeroADeviceSynchronisationGivesAllBack() {
        free(allocate(2));
        driver.devices().synchronize(DEVICE);
        assertThat(reserved()).isZero();
    }

    @Test
    void nothingGoesBackWithoutASynchronisationOfThatStream() {
        free(allocate(2));
        long event = eventOn(stream);
        while (!driver.events().hasPassed(DEVICE, event)) {
            Thread.onSpinWait();
        }
        assertThat(driver.streams().isIdle(DEVICE, stream)).isTrue();
        synchronize(stream());
        assertThat(reserved()).isEqualTo(2 * BLOCK);
    }

    @Test
    void aLoweredThresholdCountsAtTheNextSynchronisation() {
        keep(UNLIMITED);
        free(allocate(2));
        synchronize(stream);
        keep(0);
        assertThat(reserved()).isEqualTo(2 * BLOCK);
        synchronize(stream);
        assertThat(reserved()).isZero();
    }

    @Test
    void aMiddleThresholdIsTheMostThatStays() {
        keep(2 * BLOCK);
        free(allocate(4));
        synchronize(stream);
        assertThat(reserved()).isLessThanOrEqualTo(2 * BLOCK);
    }

    @Test
    void lessThanTheThresholdStays() {
        keep(4 * BLOCK);
        free(allocate(2));
        synchronize(stream);
        assertThat(reserved()).isGreaterThanOrEqualTo(2 * BLOCK);
    }

    @Test
    void withoutLimitEverythingStays() {
        keep(UNLIMITED);
        free(allocate(4));
        synchronize(stream);
        driver.devices().synchronize(DEVICE);
        assertThat(reserved()).isGreaterThanOrEqualTo(4 * BLOCK);
    }

    @Test
    void memoryInUseNeverGoes() {
        long[] blocks = allocate(3);
        free(blocks[1]);
        synchronize(stream);
        driver.pools().trimTo(DEVICE, pool, 0);
        assertThat(reserved()).isEqualTo(2 * BLOCK);
        free(blocks[0], blocks[2]);
    }

    @Test
    void trimmingLeavesWhatItIsToldToKeep() {
        keep(UNLIMITED);
        free(allocate(4));
        synchronize(stream);
        driver.pools().trimTo(DEVICE, pool, 2 * BLOCK);
        assertThat(reserved()).isEqualTo(2 * BLOCK);
        driver.pools().trimTo(DEVICE, pool, 0);
        assertThat(reserved()).isZero();
    }

    @Test
    void trimmingWaitsForNoFree() {
        StreamLatch latch = latch();
        keep(UNLIMITED);
        long[] blocks = allocate(2);
        synchronize(stream);
        latch.hold(stream);
        free(blocks);
        driver.pools().trimTo(DEVICE, pool, 0);
        assertThat(reserved()).isEqualTo(2 * BLOCK);
        latch.release();
        synchronize(stream);
        driver.pools().trimTo(DEVICE, pool, 0);
        assertThat(reserved()).isZero();
    }

    @Test
    void memoryFreedOnAStreamThatIsGoneComesBackWithItsPool() {
        long before = driver.memory().freeBytes(DEVICE);
        long gone = driver.streams().create(DEVICE);
        long other = driver.pools().create(MemoryPoolProperties.onDevice(DEVICE));
        driver.pools().setAttribute(DEVICE, other, PoolAttribute.RELEASE_THRESHOLD, UNLIMITED);
        driver.pools().free(DEVICE, driver.pools().allocateFrom(DEVICE, other, BLOCK, gone), gone);
        driver.streams().destroy(DEVICE, gone);
        driver.devices().synchronize(DEVICE);
        driver.pools().destroy(DEVICE, other);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void whatWasGivenBackIsFreeOnTheDevice() {
        long before = driver.memory().freeBytes(DEVICE);
        free(allocate(2));
        synchronize(stream);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }
}
