package io.cistern.internal.routing;

import io.cistern.internal.threads.ThreadTable;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Holds the scope stack of each thread: the region that the thread is in.
///
/// A platform thread keeps it in its counters, where an allocation reads it at no cost; a virtual thread
/// keeps it in a thread-local. Threads that a structured task scope forks find the region of the task in a
/// scoped value, at their first look-up.
public final class ScopeStacks {
    static {
        // Loads the class: the compiler inlines no method whose signature names a class that is not loaded
        // yet, and the path of every allocation has such methods, even in programs that never enter a region.
        Objects.requireNonNull(ScopeStack.class);
    }

    /// Marks a virtual thread that has left the region it inherited, which a thread-local without a value can't
    /// do.
    private static final ScopeStack OUTSIDE = new ScopeStack(null, new Route[0], OptionalLong.empty());

    private final ThreadTable<ThreadCounters> threads;

    @SuppressWarnings("ThreadLocalUsage") // a thread is in one region for each DeviceMemory
    private final ThreadLocal<ScopeStack> ofVirtualThread = new ThreadLocal<>();

    private final ScopedValue<ScopeStack> inherited = ScopedValue.newInstance();

    /// Whether any virtual thread may be in a region. If not, none needs to check.
    private volatile boolean virtualThreadsHaveRegions;

    private @Nullable Consumer<@Nullable ScopeStack> watch;

    ScopeStacks(ThreadTable<ThreadCounters> threads) {
        this.threads = threads;
    }

    /// Sets a watcher that is notified of every move into a region, or out of all (null). Must be called
    /// before the first move.
    public void watch(Consumer<@Nullable ScopeStack> whenMoved) {
        watch = whenMoved;
    }

    /// Returns the calling thread's region; null outside all.
    public @Nullable ScopeStack current() {
        return current(threads.own());
    }

    /// Returns the region for a caller that already has its [counters][Router#counters].
    public @Nullable ScopeStack current(@Nullable ThreadCounters counters) {
        return counters != null ? counters.scopes : ofVirtualThread();
    }

    private @Nullable ScopeStack ofVirtualThread() {
        if (!virtualThreadsHaveRegions) {
            return null;
        }
        ScopeStack scopes = ofVirtualThread.get();
        if (scopes == null) {
            return inherited();
        }
        return scopes != OUTSIDE ? scopes : null;
    }

    @Nullable
    ScopeStack inherited() {
        return inherited.isBound() ? inherited.get() : null;
    }

    /// Puts the calling thread into a region, or out of all.
    public void set(@Nullable ScopeStack scopes) {
        if (watch != null) {
            watch.accept(scopes);
        }
        ThreadCounters counters = threads.own();
        if (counters != null) {
            counters.scopes = scopes;
        } else {
            virtualThreadsHaveRegions = true;
            setOfVirtualThread(scopes);
        }
    }

    private void setOfVirtualThread(@Nullable ScopeStack scopes) {
        if (scopes != null) {
            ofVirtualThread.set(scopes);
        } else if (inherited.isBound()) {
            ofVirtualThread.set(OUTSIDE);
        } else {
            ofVirtualThread.remove();
        }
    }

    /// Runs code in a region, with the threads that it forks in a structured task scope.
    public <R, X extends Throwable> R call(ScopeStack scopes, ScopedValue.CallableOp<R, X> body) throws X {
        virtualThreadsHaveRegions = true;
        ScopeStack before = current();
        set(scopes);
        try {
            return ScopedValue.where(inherited, scopes).call(body);
        } finally {
            set(before);
        }
    }
}
