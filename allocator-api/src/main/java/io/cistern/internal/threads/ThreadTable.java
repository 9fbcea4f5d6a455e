package io.cistern.internal.threads;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The states of all threads, and the way from the calling thread to its own.
///
/// **Platform threads** own a state each. It is found in an array by the low bits of the thread's id, which
/// costs one read and one comparison. Each state has two entries where it may stand, so that threads whose ids
/// agree mostly find theirs there; a thread that finds both taken goes through a thread-local. When a thread
/// ends, its state waits, as it is, for the next new thread: so there are never more states than threads were
/// alive at once.
///
/// **Virtual threads** share a few states: each tries the one that its id points to, and moves on when somebody is
/// inside.
///
/// **Groups.** Several tables may share an array, each with a group of its own: a thread has one state in each.
///
/// @param <S> the states
public final class ThreadTable<S extends ThreadState> {
    /// The length of an array of entries: large enough that busy threads rarely meet, small enough to stay in the
    /// cache.
    public static final int ENTRIES = 1024;

    /// From one of a state's entries to the other.
    private static final int SECOND = ENTRIES / 2;

    /// Spreads the states of one thread.
    private static final int GROUP_STEP = 61;

    /// Above all thread ids.
    private static final int GROUP_SHIFT = 48;

    private static final int SHARED =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    /// Read and written without order: a thread takes only a state that bears its own key, which it wrote itself.
    private final @Nullable S[] entries;

    private final int group;
    private final Function<Boolean, S> maker;
    private final Consumer<S> whenOwned;

    /// Weak, since a thread lets go of its values late, and a state may lead to all that was closed. [#all]
    /// holds the states meanwhile.
    private final ThreadLocal<WeakReference<S>> mine =
            ThreadLocal.withInitial(() -> new WeakReference<>(adoptOrMake()));

    private final ReentrantLock claiming = new ReentrantLock();
    private volatile S[] all;
    private volatile S[] shared;

    /// Whether a virtual thread ever took a shared state.
    private volatile boolean isEnteredShared;

    /// @param entries as many as [#ENTRIES], all null, or those of other tables
    /// @param group unlike those of the other tables
    /// @param maker makes a state, for one thread or for several
    /// @param whenOwned is told of a state which the calling thread now owns; it may have been another's
    public ThreadTable(@Nullable S[] entries, int group, Function<Boolean, S> maker, Consumer<S> whenOwned) {
        this.entries = entries;
        this.group = group;
        this.maker = maker;
        this.whenOwned = whenOwned;
        this.all = none();
        this.shared = all;
    }

    /// Where [#find] looks.
    public @Nullable S[] entries() {
        return entries;
    }

    @SuppressWarnings("NullAway") // no element, so none that is null
    private S[] none() {
        return Arrays.copyOf(entries, 0);
    }

    /// The calling thread's state, if it stands at its first entry, where most do; else [#findSecond].
    ///
    /// For the hot ways, whose own array tells the compiler what class the states are: so nothing but the state of
    /// the array, or null, comes from here, and the cast to that class costs nothing.
    public static <S extends ThreadState> @Nullable S find(@Nullable S[] entries, int group) {
        long id = Thread.currentThread().threadId();
        S state = entries[entry((int) id, group)];
        return state != null && state.key == key(id, group) ? state : null;
    }

    /// The calling thread's state, if it stands at its second entry; else [#ownElsewhere].
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

    /// The calling thread's state, made if there is none; null for a virtual thread, which has none to itself.
    public @Nullable S own() {
        S first = find(entries, group);
        S found = first != null ? first : findSecond(entries, group);
        return found != null ? found : ownElsewhere();
    }

    /// The same for a thread that did not find it in the array. It does from now on, if an entry is free.
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

    /// Whether no thread that runs finds its state there: one that has a state of an ended thread now finds it
    /// elsewhere.
    private boolean isFree(int at) {
        S there = entries[at];
        return there == null
                || there.isOrphan()
                || (entry((int) there.key, (int) (there.key >>> GROUP_SHIFT)) | SECOND) != (at | SECOND);
    }

    private synchronized S adoptOrMake() {
        S orphan = orphan();
        S state = orphan != null ? orphan : maker.apply(true);
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

    /// The calling thread's own state, or a shared one; entered either way, with one compare-and-set.
    public S enter() {
        S own = own();
        if (own == null) {
            return enterShared();
        }
        own.enterShared();
        return own;
    }

    /// A shared state, entered; the caller leaves it. Ends, since each thread that has entered one leaves it
    /// after a few instructions, also with an error.
    public S enterShared() {
        S[] states = shared.length > 0 ? shared : makeShared();
        if (!isEnteredShared) {
            isEnteredShared = true;
        }
        int at = (int) Thread.currentThread().threadId();
        while (true) {
            S state = states[at++ & (SHARED - 1)];
            if (state.tryEnterShared()) {
                return state;
            }
            Thread.onSpinWait();
        }
    }

    /// Makes the shared states, if they were not made yet.
    public synchronized S[] makeShared() {
        if (shared.length == 0) {
            S[] made = none();
            S[] more = all;
            for (int i = 0; i < SHARED; i++) {
                S state = maker.apply(false);
                made = and(made, state);
                more = and(more, state);
            }
            all = more;
            shared = made;
        }
        return shared;
    }

    /// Whether no other thread that is alive has a state here, nor has any virtual thread.
    @SuppressWarnings("ReferenceEquality") // There is one object for each thread.
    public boolean isAlone() {
        S mine = own();
        boolean isAlone = mine != null && !isEnteredShared;
        for (S state : all) {
            isAlone &= state == mine || state.isShared() || state.isOrphan();
        }
        return isAlone;
    }

    /// All states, those of ended threads included: to be read only.
    public S[] all() {
        return all;
    }

    /// Claims all states and does something with each; a failure leaves none claimed. Callers take turns.
    public void claimEach(Consumer<S> action) {
        claiming.lock();
        try {
            BiasedLock.claimEach(all, action);
        } finally {
            claiming.unlock();
        }
    }
}
