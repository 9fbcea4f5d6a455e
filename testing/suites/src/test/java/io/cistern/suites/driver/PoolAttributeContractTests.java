package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PoolAttribute;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The attributes of a pool, one by one.
abstract class PoolAttributeContractTests extends DriverContractTests {
    private static final long UNLIMITED = -1L;
    private long pool;
    private long stream;

    PoolAttributeContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void openPool() {
        pool = pool();
        stream = stream();
    }

    private long get(PoolAttribute attribute) {
        return driver.pools().attribute(DEVICE, pool, attribute);
    }

    private void set(PoolAttribute attribute, long value) {
        driver.pools().setAttribute(DEVICE, pool, attribute, value);
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.MATCH_ALL, names = "REUSE_.*")
    void aReusePolicyIsOnUntilItIsTurnedOff(PoolAttribute policy) {
        assertThat(get(policy)).isEqualTo(1);
        set(policy, 0);
        assertThat(get(policy)).isZero();
        set(policy, 1);
        assertThat(get(policy)).isEqualTo(1);
    }

    @Test
    void theReleaseThresholdStartsAtZeroAndTakesAnyValue() {
        assertThat(get(PoolAttribute.RELEASE_THRESHOLD)).isZero();
        for (long bytes : new long[] {1, 64 * MIB, Long.MAX_VALUE, UNLIMITED, 0}) {
            set(PoolAttribute.RELEASE_THRESHOLD, bytes);
            assertThat(get(PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(bytes);
        }
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.MATCH_ALL, names = "(RESERVED|USED)_.*")
    void aNewPoolHasNothing(PoolAttribute bytes) {
        assertThat(get(bytes)).isZero();
    }

    @Test
    void usedBytesFollowWhatIsHandedOut() {
        long address = driver.pools().allocateFrom(DEVICE, pool, 3 * MIB, stream);
        assertThat(get(PoolAttribute.USED_CURRENT)).isEqualTo(3 * MIB);
        assertThat(get(PoolAttribute.USED_HIGH)).isEqualTo(3 * MIB);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
        assertThat(get(PoolAttribute.USED_CURRENT)).isZero();
        assertThat(get(PoolAttribute.USED_HIGH)).isEqualTo(3 * MIB);
    }

    @Test
    void reservedBytesAreWhatTheDeviceLacks() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.pools().allocateFrom(DEVICE, pool, 100 * MIB, stream);
        assertThat(get(PoolAttribute.RESERVED_CURRENT))
                .isGreaterThanOrEqualTo(100 * MIB)
                .isEqualTo(before - driver.memory().freeBytes(DEVICE));
        driver.pools().free(DEVICE, address, stream);
    }

    @ParameterizedTest
    @EnumSource(names = {"RESERVED_HIGH", "USED_HIGH"})
    void aHighWaterMarkIsResetToThePresentValueByZeroOnly(PoolAttribute high) {
        PoolAttribute current =
                high == PoolAttribute.USED_HIGH ? PoolAttribute.USED_CURRENT : PoolAttribute.RESERVED_CURRENT;
        long kept = driver.pools().allocateFrom(DEVICE, pool, 32 * MIB, stream);
        long freed = driver.pools().allocateFrom(DEVICE, pool, 128 * MIB, stream);
        driver.pools().free(DEVICE, freed, stream);
        synchronize(stream);
        assertThat(get(high)).isGreaterThanOrEqualTo(160 * MIB);
        assertFails(() -> set(high, 1), DriverCall.MEM_POOL_SET_ATTRIBUTE, CudaResult.INVALID_VALUE);
        set(high, 0);
        assertThat(get(high))
                .isEqualTo(get(current))
                .isGreaterThanOrEqualTo(32 * MIB)
                .isLessThan(160 * MIB);
        driver.pools().free(DEVICE, kept, stream);
    }

    @ParameterizedTest
    @EnumSource(names = {"RESERVED_CURRENT", "USED_CURRENT"})
    void aPresentValueCannotBeSet(PoolAttribute current) {
        assertFails(() -> set(current, 0), DriverCall.MEM_POOL_SET_ATTRIBUTE, CudaResult.INVALID_VALUE);
    }
}
