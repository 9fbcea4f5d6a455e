package io.cistern.internal.threads;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Holds the states of all threads, and finds the calling thread's own.
///
/// **Platform threads** own a state each. A thread finds it in an array by the low bits of its id, with one
/// read and one comparison. Each state may stand in one of two entries, so that threads whose low bits agree
/// mostly find theirs in the array. A thread that finds both entries taken uses a thread-local. When a
/// thread ends, its state waits unchanged for the next new thread. So there are never more states than threads
/// that were alive at once.
///
/// **Virtual threads** share a few states: each tries the state that its id points to, and moves on if another
/// thread is inside.
///
/// **Groups.** Several tables may share an array, each with a group of its own: a thread has one state in each.
///
/// @param <S> the states
public final class ThreadTable<S extends ThreadState> {
    /// The length of an array of entries: large enough that busy threads rarely collide, small enough to stay
    /// in the cache.
    public static final int ENTRIES = 1024;

    /// The distance between a state's two entries.
    private static final int SECOND = ENTRIES / 2;

    /// Spreads the states that one thread has in several groups.
    private static final int GROUP_STEP = 61;

    /// Above all thread ids.
    private static final int GROUP_SHIFT = 48;

    private static final int SHARED =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    /// Read and written without order: a thread takes only a state with its own key, which it wrote itself.
    private final @Nullable S[] entries;

    private final int group;
    private final Function<Boolean, S> factory;
    private final Consumer<S> whenOwned;

    /// Weak, since a thread drops its values late, and a state may keep closed objects reachable. [#all] holds
    /// the states meanwhile.
    private final ThreadLocal<WeakReference<S>> mine =
            ThreadLocal.withInitial(() -> new WeakReference<>(adoptOrMake()));

    private final ReentrantLock claiming = new ReentrantLock();
    private volatile S[] all;
    private volatile S[] shared;

    /// @param entries an array of [#ENTRIES] nulls, or the array of other tables
    /// @param group the table's group, different from those of the other tables
    /// @param factory makes a state, for one thread or for several
    /// @param whenOwned is notified of a state that the calling thread now owns; it may have been another thread's
    public ThreadTable(@Nullable S[] entries, int group, Function<Boolean, S> factory, Consumer<S> whenOwned) {
        this.entries = entries;
        this.group = group;
        this.factory = factory;
        this.whenOwned = whenOwned;
        this.all = none();
        this.shared = all;
    }

    /// Returns the array in which [#find] looks.
    public @Nullable S[] entries() {
        return entries;
    }

    @SuppressWarnings("NullAway") // no element, so none that is null
    private S[] none() {
        return Arrays.copyOf(entries, 0);
    }

    /// Returns the calling thread's state, if it stands at its first entry, as most do; else null, and the
    /// caller tries [#findSecond].
    ///
    /// For hot paths. The caller's own array tells the compiler the class of the states. This returns only a
    /// state of the array, or null, so the cast to that class costs nothing.
    public static <S extends ThreadState> @Nullable S find(@Nullable S[] entries, int group) {
        long id = Thread.currentThread().threadId();
        S state = entries[entry((int) id, group)];
        return state != null && state.key == key(id, group) ? state : null;
    }

    /// Returns the calling thread's state, if it stands at its second entry; else null, and the caller tries
    /// [#ownElsewhere].
    public static <S extends ThreadState> @Nullable S findSecond(@Nullable S[] entries, int group) {
        long id = Thread.currentThread().threadId();
        S state = entries[entry((int) id, group) ^ SECOND];
        return state != null && state.key == key(id, group) ? state : null;
    }

    private static long key(long id, int group) {
        return id + ((long) group << GROUP_SHIFT);
    }

    private static int entry(int id, int group) {
        return (id + group * GROUP_STEP) & (ENTRIES - 1);
    }

    /// Returns the calling thread's state, and makes it if there is none; null for a virtual thread, which owns
    /// none.
    public @Nullable S own() {
        S first = find(entries, group);
        S found = first != null ? first : findSecond(entries, group);
        return found != null ? found : ownElsewhere();
    }

    /// Returns the state of a thread that did not find it in the array. If an entry is free, the thread
    /// finds it there from now on.
    public @Nullable S ownElsewhere() {
        Thread thread = Thread.currentThread();
        if (thread.isVirtual()) {
            return null;
        }
        S state = Objects.requireNonNull(mine.get().get());
        int at = entry((int) thread.threadId(), group);
        if (isFree(at)) {
            entries[at] = state;
        } else if (isFree(at ^ SECOND)) {
            entries[at ^ SECOND] = state;
        }
        return state;
    }

    /// Returns whether no running thread finds its state at an entry. A thread that took over the state of an
    /// ended thread finds it elsewhere.
    private boolean isFree(int at) {
        S there = entries[at];
        return there == null
                || there.isOrphan()
                || (entry((int) there.key, (int) (there.key >>> GROUP_SHIFT)) | SECOND) != (at | SECOND);
    }

    private synchronized S adoptOrMake() {
        S orphan = orphan();
        S state = orphan != null ? orphan : factory.apply(true);
        Thread thread = Thread.currentThread();
        state.own(thread, key(thread.threadId(), group));
        whenOwned.accept(state);
        if (orphan == null) {
            all = and(all, state);
        }
        return state;
    }

    private @Nullable S orphan() {
        for (S state : all) {
            if (state.isOrphan()) {
                return state;
            }
        }
        return null;
    }

    private static <S> S[] and(S[] states, S another) {
        S[] more = Arrays.copyOf(states, states.length + 1);
        more[states.length] = another;
        return more;
    }

    /// Enters the calling thread's own state, or a shared one, with one compare-and-set, and returns it.
    public S enter() {
        S own = own();
        if (own == null) {
            return enterShared();
        }
        own.enterShared();
        return own;
    }

    /// Enters a shared state and returns it; the caller leaves it. The loop ends, since each thread that has
    /// entered a state leaves it soon, even after an error.
    public S enterShared() {
        S[] states = shared.length > 0 ? shared : makeShared();
        int first = (int) Thread.currentThread().threadId();
        for (int spins = 0; true; spins++) {
            S state = states[first + spins & (SHARED - 1)];
            if (state.tryEnterShared()) {
                return state;
            }
            BiasedLock.pause(spins);
        }
    }

    /// Makes the shared states, if they were not made yet.
    public synchronized S[] makeShared() {
        if (shared.length == 0) {
            S[] made = none();
            S[] more = all;
            for (int i = 0; i < SHARED; i++) {
                S state = factory.apply(false);
                made = and(made, state);
                more = and(more, state);
            }
            all = more;
            shared = made;
        }
        return shared;
    }

    /// Returns all states, including those of ended threads. The caller must not change the array.
    public S[] all() {
        return all;
    }

    /// Claims all states and runs an action with each. A failure leaves none claimed. Callers take turns.
    public void claimEach(Consumer<S> action) {
        claiming.lock();
        try {
            BiasedLock.claimEach(all, action);
        } finally {
            claiming.unlock();
        }
    }
}
