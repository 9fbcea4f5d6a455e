package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(value = 20, threadMode = ThreadMode.SEPARATE_THREAD)
class BiasedLockTests {
    private static final class State extends ThreadState {
        private final boolean owned;

        State(boolean owned) {
            super(owned);
            this.owned = owned;
        }

        boolean enterNow() {
            return owned ? tryEnter() : tryEnterShared();
        }
    }

    private final State owned = new State(true);
    private final State shared = new State(false);
    private final State[] both = {owned, shared};

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whileItIsClaimedNobodyElseIsInside(boolean oneOwner) {
        State lock = oneOwner ? owned : shared;
        lock.claim();
        lock.awaitClaim();
        assertThat(lock.isClaimed()).isTrue();
        assertThat(lock.enterNow()).isFalse();
        lock.unclaim();
        assertThat(lock.isClaimed()).isFalse();
        assertThat(lock.enterNow()).isTrue();
        lock.leave();
        assertThat(lock.enterNow()).as("after it left").isTrue();
    }

    /// A claimer that comes after the owner was refused must not wait for it.
    @Test
    void anOwnerThatIsRefusedIsNotInside() {
        owned.claim();
        assertThat(owned.tryEnter()).isFalse();
        owned.awaitClaim();
        owned.unclaim();
        assertThat(owned.tryEnter()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aClaimWaitsUntilWhoIsInsideHasLeft(boolean oneOwner) throws Exception {
        State inside = oneOwner ? owned : shared;
        assertThat(inside.enterNow()).isTrue();
        List<State> seen = new ArrayList<>();
        FutureTask<Boolean> claiming = new FutureTask<>(() -> BiasedLock.claimEach(both, seen::add), true);
        Thread claimer = Thread.ofPlatform().start(claiming);
        while (claimer.getState() != Thread.State.TIMED_WAITING) { // a long wait sleeps
            assertThat(claiming.isDone()).isFalse();
            Thread.onSpinWait();
        }
        assertThat(claiming.isDone()).isFalse();
        inside.leave();
        claiming.get();
        assertThat(seen).containsExactly(both);
        assertThat(both).allMatch(State::enterNow);
    }

    @Test
    void whoSharesItWaitsUntilItIsFree() throws Exception {
        shared.enterShared();
        CountDownLatch entered = new CountDownLatch(1);
        Thread other = Thread.ofPlatform().start(() -> {
            shared.enterShared();
            entered.countDown();
        });
        assertThat(entered.await(20, TimeUnit.MILLISECONDS)).isFalse();
        shared.leave();
        other.join();
        assertThat(shared.tryEnterShared()).as("the other is inside").isFalse();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aFailureLeavesNoneClaimed(int failing) {
        assertThatIllegalStateException()
                .isThrownBy(() -> BiasedLock.claimEach(both, lock -> {
                    assertThat(lock.enterNow()).isFalse();
                    if (lock == both[failing]) {
                        throw new IllegalStateException("as asked");
                    }
                }));
        assertThat(both).allMatch(State::enterNow);
    }

    /// An owner without stack stays marked; so may one that ended meanwhile.
    @Test
    void aClaimDoesNotWaitForItsOwnThreadOrOneThatEnded() throws Exception {
        owned.own(Thread.currentThread(), 1);
        assertThat(owned.tryEnter()).isTrue();
        State left = new State(true);
        Thread ended = Thread.ofPlatform().start(() -> {
            left.own(Thread.currentThread(), 2);
            left.active = 1;
        });
        ended.join();
        List<State> seen = new ArrayList<>();
        BiasedLock.claimEach(new State[] {owned, left}, seen::add);
        assertThat(seen).containsExactly(owned, left);
    }

    @Test
    void aStateIsOfOneThreadOrShared() throws Exception {
        assertThat(shared.isShared()).isTrue();
        assertThat(shared.isOrphan()).isFalse();
        Thread owner = Thread.ofPlatform().unstarted(() -> {});
        owned.own(Thread.currentThread(), 1);
        assertThat(owned.isShared()).isFalse();
        assertThat(owned.isOrphan()).isFalse();
        owner.start();
        owner.join();
        owned.own(owner, 2);
        assertThat(owned.isOrphan()).isTrue();
    }
}
