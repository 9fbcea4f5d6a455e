package io.cistern;

import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.FrameworkFrames;
import java.lang.System.Logger.Level;
import java.lang.ref.Cleaner;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The scopes of one device memory that are open, each with the place that entered it, and the reports of those that
/// were forgotten: once for each such place, as a warning of the logger `io.cistern.scopes`. Nothing here throws.
///
/// **Threads.** Any.
final class OpenScopes {
    private final Set<Entry> open = ConcurrentHashMap.newKeySet();
    private final Set<StackTraceElement> reported = ConcurrentHashMap.newKeySet();

    /// Watches a scope until it is closed.
    Entry entered(Scope scope, Allocator allocator) {
        Entry entry = new Entry(allocator, FrameworkFrames.caller());
        open.add(entry);
        entry.registered = Leaks.Cleaners.CLEANER.register(scope, entry);
        return entry;
    }

    /// A pool closes: reports its scopes that nobody will close any more in an orderly way, those of ended
    /// threads and of the calling one. Other threads may be about to close theirs.
    void closing(MemoryPool pool) {
        Thread caller = Thread.currentThread();
        report(
                "the pool closes",
                entry -> entry.allocator.equals(pool.allocator())
                        && (entry.owner.equals(caller) || !entry.owner.isAlive()));
    }

    /// The device memory closes: reports all.
    void closing() {
        report("its device memory closes", _ -> true);
    }

    private void report(String when, Predicate<Entry> forgotten) {
        open.stream().filter(forgotten).forEach(entry -> entry.report("is open while " + when));
    }

    /// An open scope. It does not keep the scope reachable.
    final class Entry implements Runnable {
        private final Allocator allocator;
        private final StackTraceElement place;
        private final Thread owner = Thread.currentThread();
        private Cleaner.@Nullable Cleanable registered;
        private volatile boolean closed;

        private Entry(Allocator allocator, StackTraceElement place) {
            this.allocator = allocator;
            this.place = place;
        }

        /// The scope is closed.
        void closed() {
            closed = true;
            open.remove(this);
            if (registered != null) {
                registered.clean();
            }
        }

        /// The scope is closed, or is found to be unreachable.
        @Override
        public void run() {
            if (!closed) {
                open.remove(this);
                report("was dropped without close");
            }
        }

        @SuppressWarnings("CatchingUnchecked") // a diagnostic must not fail what it is about
        private void report(String what) {
            if (!reported.add(place)) {
                return;
            }
            try {
                System.getLogger("io.cistern.scopes")
                        .log(
                                Level.WARNING,
                                "a scope of {0} {1}: entered by thread {2} at {3}; open scopes in try-with-resources",
                                allocator,
                                what,
                                owner.getName(),
                                place);
            } catch (RuntimeException broken) {
                // nobody can be told
            }
        }
    }
}
