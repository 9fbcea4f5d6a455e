package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Which stream gets freed memory of a pool: the same stream always and first, another stream by the three
/// reuse policies, each tested alone. The reserved bytes show reuse: they stay equal if memory was reused, and
/// grow by a block if not.
abstract class PoolReuseContractTests extends DriverContractTests {
    private static final long BLOCK = 64 * MIB;
    private static final long UNLIMITED = -1L;
    private long pool;
    private long first;
    private long second;
    private StreamLatch latch;

    PoolReuseContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void openPool() {
        latch = latch();
        pool = pool();
        first = stream();
        second = stream();
        driver.pools().setAttribute(DEVICE, pool, PoolAttribute.RELEASE_THRESHOLD, UNLIMITED);
    }

    private void allowOnly(PoolAttribute... policies) {
        for (PoolAttribute policy : PoolAttribute.values()) {
            if (policy.isInt()) {
                driver.pools()
                        .setAttribute(
                                DEVICE,
                                pool,
                                policy,
                                java.util.List.of(policies).contains(policy) ? 1 : 0);
            }
        }
    }

    /// Allocates memory and frees it on the first stream after the latch, so the free has not happened yet.
    private void freeBehindLatch() {
        long address = driver.pools().allocateFrom(DEVICE, pool, BLOCK, first);
        synchronize(first);
        latch.hold(first);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, BLOCK, first);
        driver.pools().free(DEVICE, address, first);
    }

    /// Lets the first stream finish without a synchronisation, which would affect the pool.
    private void letFirstFinish() {
        latch.release();
        while (!driver.streams().isIdle(DEVICE, first)) {
            Thread.onSpinWait();
        }
    }

    /// Allocates on a stream and returns whether the pool had to grow.
    private boolean grows(long stream) {
        long before = driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT);
        long address = driver.pools().allocateFrom(DEVICE, pool, BLOCK, stream);
        long after = driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT);
        driver.pools().free(DEVICE, address, stream);
        assertThat(after - before).isIn(0L, BLOCK);
        return after > before;
    }

    @Test
    void theSameStreamGetsItBeforeTheFreeHasHappened() {
        allowOnly();
        freeBehindLatch();
        assertThat(grows(first)).isFalse();
    }

    @Test
    void withoutAnyPolicyAnotherStreamGetsOtherMemory() {
        allowOnly();
        freeBehindLatch();
        assertThat(grows(second)).isTrue();
    }

    @Test
    void followingEventsAStreamThatWaitedGetsIt() {
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES);
        freeBehindLatch();
        driver.streams().await(DEVICE, second, eventOn(first));
        assertThat(grows(second)).isFalse();
    }

    @Test
    void followingEventsAStreamThatWaitedForAWaitingStreamGetsIt() {
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES);
        freeBehindLatch();
        long between = stream();
        driver.streams().await(DEVICE, between, eventOn(first));
        driver.streams().await(DEVICE, second, eventOn(between));
        assertThat(grows(second)).isFalse();
    }

    @Test
    void followingEventsAStreamThatDidNotWaitGetsOtherMemory() {
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES);
        freeBehindLatch();
        assertThat(grows(second)).isTrue();
    }

    @Test
    void followingEventsAWaitFromBeforeTheFreeDoesNotCount() {
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES);
        driver.streams().await(DEVICE, second, eventOn(first));
        freeBehindLatch();
        assertThat(grows(second)).isTrue();
    }

    @Test
    void opportunisticallyAFreeThatHasHappenedIsReused() {
        allowOnly(PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC);
        freeBehindLatch();
        letFirstFinish();
        assertThat(grows(second)).isFalse();
    }

    @Test
    void withoutOpportunismAFreeThatHasHappenedUnseenIsNotReused() {
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES, PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES);
        freeBehindLatch();
        letFirstFinish();
        assertThat(grows(second)).isTrue();
    }

    @Test
    void aFreeThatWasSynchronisedIsReusedUnderAnyPolicy() {
        allowOnly();
        freeBehindLatch();
        latch.release();
        synchronize(first);
        assertThat(grows(second)).isFalse();
    }

    @Test
    void opportunisticallyAFreeThatHasNotHappenedIsNotReused() {
        allowOnly(PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC);
        freeBehindLatch();
        assertThat(grows(second)).isTrue();
    }

    /// The driver does not use `REUSE_ALLOW_INTERNAL_DEPENDENCIES` while the device has memory to grow into.
    @Test
    void internalDependenciesAreNotMadeWhileThePoolCanGrow() {
        allowOnly(PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES);
        freeBehindLatch();
        assertThat(grows(second)).isTrue();
        assertThat(driver.streams().isIdle(DEVICE, second)).isTrue();
    }

    /// The allocation returns at once; then its stream waits for the other stream's free.
    @Test
    void internalDependenciesAreMadeWhereThePoolCannotGrow() {
        usePoolOfOneBlock();
        allowOnly(PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES);
        freeBehindLatch();
        assertThat(grows(second)).isFalse();
        assertThat(driver.streams().isIdle(DEVICE, second)).isFalse();
        latch.release();
        synchronize(second);
    }

    @Test
    void withoutInternalDependenciesAFullPoolIsOutOfMemory() {
        usePoolOfOneBlock();
        allowOnly(PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC);
        freeBehindLatch();
        assertFails(
                () -> driver.pools().allocateFrom(DEVICE, pool, BLOCK, second),
                DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
                CudaResult.OUT_OF_MEMORY);
    }

    private void usePoolOfOneBlock() {
        long small = driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(DEVICE), 0, BLOCK));
        afterwards(() -> driver.pools().destroy(DEVICE, small));
        driver.pools().setAttribute(DEVICE, small, PoolAttribute.RELEASE_THRESHOLD, UNLIMITED);
        pool = small;
    }

    private long allocate(long byteSize, long stream) {
        long address = driver.pools().allocateFrom(DEVICE, pool, byteSize, stream);
        afterwards(() -> driver.pools().free(DEVICE, address, stream));
        return address;
    }

    private long allocateAndFreeLater(long byteSize, long stream) {
        long address = driver.pools().allocateFrom(DEVICE, pool, byteSize, stream);
        allocate(MIB, stream); // so that the freed block does not merge with its successor
        return address;
    }

    @Test
    void aStreamTakesWhatItFreedLastBeforeIdleMemory() {
        long exact = allocateAndFreeLater(BLOCK, first);
        long larger = allocateAndFreeLater(2 * BLOCK, first);
        driver.pools().free(DEVICE, exact, first);
        synchronize(first);
        latch.hold(first);
        driver.pools().free(DEVICE, larger, first);
        assertThat(allocate(BLOCK, first)).isEqualTo(larger);
    }

    @Test
    void idleMemoryIsTakenBeforeWhatAnotherStreamFreed() {
        long idle = allocateAndFreeLater(BLOCK, first);
        long freed = allocateAndFreeLater(BLOCK, first);
        driver.pools().free(DEVICE, idle, first);
        synchronize(first);
        driver.pools().free(DEVICE, freed, first);
        assertThat(allocate(BLOCK, second)).isEqualTo(idle);
        assertThat(allocate(BLOCK, second)).isEqualTo(freed);
    }

    @Test
    void idlePagesMoveUnderABlockThatFitsNowhere() {
        long idle = allocateAndFreeLater(BLOCK, first);
        driver.pools().free(DEVICE, idle, first);
        synchronize(first);
        long before = driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT);
        allocate(BLOCK + BLOCK / 2, first);
        long after = driver.pools().attribute(DEVICE, pool, PoolAttribute.RESERVED_CURRENT);
        assertThat(after - before).isEqualTo(BLOCK / 2);
    }

    @Test
    void anotherPoolNeverGetsIt() {
        freeBehindLatch();
        latch.release();
        synchronize(first);
        long before = driver.memory().freeBytes(DEVICE);
        long other = pool();
        long address = driver.pools().allocateFrom(DEVICE, other, BLOCK, first);
        assertThat(before - driver.memory().freeBytes(DEVICE)).isEqualTo(BLOCK);
        driver.pools().free(DEVICE, address, first);
    }
}
