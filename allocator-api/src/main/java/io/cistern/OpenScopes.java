package io.cistern;

import io.cistern.internal.leaks.DropWatch;
import io.cistern.internal.names.FrameworkFrames;
import io.cistern.internal.names.ThreadNames;
import io.cistern.internal.routing.ScopeStack;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Reports mistakes with the scopes of one device memory, as [DeviceMemory.Builder#reportScopes] says: scopes
/// that were forgotten, and threads that allocate outside every scope. Each place in the program is reported
/// once. Nothing here throws.
///
/// **Threads.** Any. A thread that ends inside a scope is forgotten at the next report.
final class OpenScopes {
    /// Enough to see the pattern. After this many reports, allocations cost nothing extra.
    private static final int MAX_OUTSIDE = 100;

    /// Enough to find the place where the scope was opened.
    private static final int MAX_SCOPES = 5;

    private final Set<Entry> open = ConcurrentHashMap.newKeySet();

    /// The places in the program that entered a scope and forgot it.
    private final Set<StackTraceElement> forgotten = ConcurrentHashMap.newKeySet();

    /// The scope stack of each thread that is in a scope.
    private final Map<Thread, ScopeStack> regions = new ConcurrentHashMap<>();

    /// The places in the program that allocated outside scopes.
    private final Set<StackTraceElement> outside = ConcurrentHashMap.newKeySet();

    /// Watches a scope until it is closed.
    Entry entered(Scope scope, Allocator allocator) {
        Entry entry = new Entry(allocator, FrameworkFrames.caller());
        open.add(entry);
        entry.watch = new DropWatch(scope, entry::dropped);
        return entry;
    }

    /// Called when a pool closes. Reports the pool's scopes that can no longer be closed in order: those of
    /// ended threads and of the calling thread. Other threads may be about to close theirs.
    void closing(MemoryPool pool) {
        Thread caller = Thread.currentThread();
        report(
                "the pool closes",
                entry -> entry.allocator.equals(pool) && (entry.owner.equals(caller) || !entry.owner.isAlive()));
    }

    /// Called when the device memory closes. Reports all open scopes.
    void closing() {
        report("its device memory closes", _ -> true);
    }

    private void report(String when, Predicate<Entry> which) {
        open.stream().filter(which).forEach(entry -> entry.report("is open while " + when));
    }

    /// Called when the calling thread's scope stack changes.
    void moved(@Nullable ScopeStack region) {
        if (region == null) {
            regions.remove(Thread.currentThread());
        } else {
            regions.put(Thread.currentThread(), region);
        }
    }

    /// Called when no scope serves an allocation of the calling thread. If the thread is in no scope at all,
    /// and other threads are in matching scopes, it is most likely a worker to which a scope was not carried.
    void allocates(int device, long stream) {
        Thread thread = Thread.currentThread();
        if (regions.isEmpty() || regions.containsKey(thread) || outside.size() >= MAX_OUTSIDE) {
            return;
        }
        regions.keySet().removeIf(other -> !other.isAlive());
        String scopes = regions.entrySet().stream()
                .filter(entry -> entry.getValue().route(device, stream) != null)
                .limit(MAX_SCOPES)
                .map(entry -> entry.getValue() + " in thread " + ThreadNames.of(entry.getKey()))
                .collect(Collectors.joining(", "));
        if (scopes.isEmpty()) {
            return;
        }
        StackTraceElement place = FrameworkFrames.caller();
        if (outside.add(place)) {
            warn(
                    "thread {0} allocated on device {1} outside any scope while other threads have scopes open: {2}; if"
                            + " it works for one of those threads, carry the scope to it with ScopeCarrier; at {3}",
                    ThreadNames.of(thread), device, scopes, place);
        }
    }

    private static void warn(String format, Object... details) {
        try {
            System.getLogger("io.cistern.scopes").log(Level.WARNING, format, details);
        } catch (RuntimeException broken) {
            // A diagnostic must not fail the call that it is about.
        }
    }

    /// An open scope. It does not keep the scope reachable.
    final class Entry {
        private final Allocator allocator;
        private final StackTraceElement place;
        private final Thread owner = Thread.currentThread();
        private @Nullable DropWatch watch;

        private Entry(Allocator allocator, StackTraceElement place) {
            this.allocator = allocator;
            this.place = place;
        }

        /// Called when the scope is closed.
        void closed() {
            open.remove(this);
            if (watch != null) {
                watch.end();
            }
        }

        private void dropped() {
            open.remove(this);
            report("was dropped without being closed");
        }

        private void report(String what) {
            if (forgotten.add(place)) {
                warn(
                        "a scope of {0} {1}: entered by thread {2} at {3}; open scopes in try-with-resources",
                        allocator, what, ThreadNames.of(owner), place);
            }
        }
    }
}
