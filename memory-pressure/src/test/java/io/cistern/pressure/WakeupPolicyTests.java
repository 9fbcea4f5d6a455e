package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Which thread goes on and which gives up, rule by rule, in states that no timing has to bring about.
final class WakeupPolicyTests {
    private static final Duration LONG = Duration.ofHours(1);

    private final ReentrantLock lock = new ReentrantLock();
    private final BlockOwners owners = new BlockOwners();
    private final TaskThreads threads = new TaskThreads();
    private final WakeupPolicy policy = new WakeupPolicy(threads, owners, new BlockedThreadDetector(lock, LONG, LONG));
    private final Arbitration arbitration = new Arbitration(owners, LONG, LONG);
    private final TaskThread high = enter(1, 10);
    private final TaskThread middle = enter(2, 5);
    private final TaskThread low = enter(3, 0);
    private long nextAddress = 4096;

    @BeforeEach
    void hold() {
        lock.lock();
    }

    @AfterEach
    void release() {
        lock.unlock();
    }

    private TaskThread enter(long id, int priority) {
        TaskThread thread = new TaskThread(new Task(id, priority, arbitration), arbitration, lock.newCondition());
        threads.add(thread);
        return thread;
    }

    /// Makes a thread block for a request.
    private void block(TaskThread thread, long byteSize, long freedBytes) {
        contend(thread, byteSize);
        thread.state = ThreadState.BLOCKED;
        thread.freedBytes = freedBytes;
    }

    private void contend(TaskThread thread, long byteSize) {
        threads.lacks(thread);
        thread.contends = true;
        thread.lacks = new Refusal(byteSize, 0, null);
    }

    /// Makes a thread wait for its turn after a rollback.
    private void rollBack(TaskThread thread, long neededBytes, long heldByAll) {
        threads.lacks(thread);
        thread.awaitsTurn = true;
        thread.hasRolledBack = true;
        thread.state = ThreadState.ROLLED_BACK;
        thread.neededBytes = neededBytes;
        thread.heldByAll = heldByAll;
    }

    private void holdBytes(TaskThread thread, long byteSize) {
        nextAddress += 4096;
        owners.put(nextAddress, thread, byteSize);
        thread.holds(byteSize);
    }

    private void assertStates(ThreadState ofHigh, ThreadState ofMiddle, ThreadState ofLow) {
        assertThat(high.state).as("high").isEqualTo(ofHigh);
        assertThat(middle.state).as("middle").isEqualTo(ofMiddle);
        assertThat(low.state).as("low").isEqualTo(ofLow);
    }

    @ParameterizedTest
    @CsvSource({"100, 24, false", "100, 25, true", "3, 0, false", "3, 1, true", "1, 1, true"})
    void aQuarterOfARequestIsWorthAnAttempt(long byteSize, long freedBytes, boolean wakes) {
        block(high, byteSize, freedBytes);
        policy.pass();
        assertThat(high.state).isEqualTo(wakes ? ThreadState.RUNNING : ThreadState.BLOCKED);
    }

    @Test
    void theFirstThreadForWhichEnoughWasFreedTriesAgain() {
        block(low, 100, 100);
        block(middle, 100, 100);
        block(high, 100, 10);
        policy.pass();
        assertStates(ThreadState.BLOCKED, ThreadState.RUNNING, ThreadState.BLOCKED);
    }

    @Test
    void nobodyOvertakesAnAttemptThatGoesBefore() {
        block(middle, 100, 100);
        contend(high, 100);
        policy.pass();
        assertThat(middle.state).isEqualTo(ThreadState.BLOCKED);
        high.contends = false;
        policy.pass();
        assertThat(middle.state).isEqualTo(ThreadState.RUNNING);
    }

    @Test
    void anAttemptThatGoesAfterIsOvertaken() {
        block(middle, 100, 100);
        contend(low, 100);
        policy.pass();
        assertThat(middle.state).isEqualTo(ThreadState.RUNNING);
    }

    @Test
    void whoRolledBackWaitsWhileOthersAreBlocked() {
        rollBack(high, 10, 1000);
        block(low, 100, 0);
        policy.pass();
        assertStates(ThreadState.ROLLED_BACK, ThreadState.RUNNING, ThreadState.BLOCKED);
    }

    @ParameterizedTest(name = "{0} held, {1} outstanding, {2} needed of {3}")
    @CsvSource({"0, 0, 50, 50, true", "0, 0, 51, 50, false", "20, 0, 30, 50, true", "20, 1, 30, 50, false"})
    void whoRolledBackBeginsOnceThereIsMemory(
            long heldBytes, long outstanding, long needed, long heldByAll, boolean begins) {
        rollBack(middle, needed, heldByAll);
        low.expectedBytes = heldBytes + outstanding;
        if (heldBytes > 0) {
            holdBytes(low, heldBytes);
        }
        policy.pass();
        assertThat(middle.state).isEqualTo(begins ? ThreadState.RUNNING : ThreadState.ROLLED_BACK);
        assertThat(middle.expectedBytes).isEqualTo(begins ? needed : 0);
    }

    @Test
    void nobodyBeginsWhileAThreadThatGoesBeforeRollsBack() {
        rollBack(middle, 10, 100);
        high.state = ThreadState.ROLLING_BACK;
        policy.pass();
        assertThat(middle.state).isEqualTo(ThreadState.ROLLED_BACK);
        high.state = ThreadState.RUNNING;
        low.state = ThreadState.ROLLING_BACK;
        policy.pass();
        assertThat(middle.state).isEqualTo(ThreadState.RUNNING);
    }

    /// One competes less, whatever was freed.
    @Test
    void afterTheEndOfATaskTheFirstWithAnyFreesTries() {
        block(high, 100, 0);
        block(middle, 100, 1);
        block(low, 100, 1);
        policy.afterEnd();
        assertStates(ThreadState.BLOCKED, ThreadState.RUNNING, ThreadState.BLOCKED);
    }

    @Test
    void afterTheEndOfATaskTheFirstThatRolledBackBegins() {
        rollBack(middle, 100, 0);
        rollBack(low, 100, 0);
        policy.afterEnd();
        assertStates(ThreadState.RUNNING, ThreadState.RUNNING, ThreadState.ROLLED_BACK);
    }

    @Test
    void theFirstThatWaitsIsFound() {
        assertThat(policy.firstWaiting()).isNull();
        contend(high, 100);
        rollBack(middle, 100, 0);
        block(low, 100, 0);
        assertThat(policy.firstWaiting()).isSameAs(middle);
    }

    @Test
    void aDeadlockIsOneOnlyIfAllWait() {
        block(high, 100, 0);
        block(middle, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.BLOCKED, ThreadState.BLOCKED, ThreadState.RUNNING);
    }

    @Test
    void inADeadlockFreesThatWereTooFewAreTriedFirst() {
        block(high, 100, 0);
        block(middle, 100, 1);
        block(low, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.BLOCKED, ThreadState.RUNNING, ThreadState.BLOCKED);
    }

    @Test
    void inADeadlockTheFirstThatRolledBackBegins() {
        rollBack(high, 100, 0);
        rollBack(middle, 100, 0);
        rollBack(low, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.RUNNING, ThreadState.ROLLED_BACK, ThreadState.ROLLED_BACK);
    }

    @Test
    void inADeadlockTheLastThatHoldsMemoryRollsBack() {
        block(high, 100, 0);
        block(middle, 30, 0);
        block(low, 100, 0);
        holdBytes(high, 40);
        holdBytes(middle, 20);
        policy.breakDeadlock();
        assertStates(ThreadState.BLOCKED, ThreadState.ROLLING_BACK, ThreadState.BLOCKED);
        assertThat(middle.hasRolledBack).isTrue();
        assertThat(middle.neededBytes).as("its own and the request").isEqualTo(50);
        assertThat(middle.heldByAll).isEqualTo(60);
    }

    @Test
    void inADeadlockWithoutMemoryTheLastRollsBack() {
        block(high, 100, 0);
        block(middle, 100, 0);
        block(low, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.BLOCKED, ThreadState.BLOCKED, ThreadState.ROLLING_BACK);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theFirstSplitsOnceItHasRolledBack(boolean rolledBackBefore) {
        block(high, 100, 0);
        high.hasRolledBack = rolledBackBefore;
        rollBack(middle, 100, 0);
        rollBack(low, 100, 0);
        policy.breakDeadlock();
        assertStates(
                rolledBackBefore ? ThreadState.SPLITTING : ThreadState.ROLLING_BACK,
                ThreadState.ROLLED_BACK,
                ThreadState.ROLLED_BACK);
    }

    @Test
    void whoGoesAfterAThreadThatRolledBackDoesNotSplit() {
        rollBack(high, 100, 0);
        block(middle, 100, 0);
        middle.hasRolledBack = true;
        rollBack(low, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.ROLLED_BACK, ThreadState.ROLLING_BACK, ThreadState.ROLLED_BACK);
    }

    @Test
    void whoIsNotBlockedAloneDoesNotSplit() {
        block(high, 100, 0);
        block(middle, 100, 0);
        middle.hasRolledBack = true;
        rollBack(low, 100, 0);
        policy.breakDeadlock();
        assertStates(ThreadState.BLOCKED, ThreadState.ROLLING_BACK, ThreadState.ROLLED_BACK);
    }
}
