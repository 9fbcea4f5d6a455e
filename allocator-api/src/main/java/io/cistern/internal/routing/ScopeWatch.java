package io.cistern.internal.routing;

import io.cistern.internal.names.FrameworkFrames;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Reports threads that allocate outside every scope while other threads are in one that would have served: most
/// likely workers to which the scope was not carried.
///
/// Each place in the program that allocates so is reported once, as a warning of the logger `io.cistern.scopes`.
///
/// **Threads.** Any. A thread that ends inside a scope is forgotten at the next report.
public final class ScopeWatch {
    /// Enough to see the pattern; after them an allocation pays nothing any more.
    private static final int MAX_REPORTS = 100;

    /// Enough to find the place where the scope was opened.
    private static final int MAX_SCOPES = 5;

    private static final Logger LOGGER = System.getLogger("io.cistern.scopes");

    /// The innermost region of each thread that is in one.
    private final Map<Thread, ScopeStack> open = new ConcurrentHashMap<>();

    /// The places that allocated outside scopes.
    private final Set<StackTraceElement> reported = ConcurrentHashMap.newKeySet();

    /// Notes that the calling thread is in a region now, or in none.
    void moved(@Nullable ScopeStack scopes) {
        if (scopes == null) {
            open.remove(Thread.currentThread());
        } else {
            open.put(Thread.currentThread(), scopes);
        }
    }

    /// Says that the calling thread allocates outside any region that fits.
    public void allocates(int device, long stream) {
        Thread thread = Thread.currentThread();
        if (open.isEmpty() || open.containsKey(thread) || reported.size() >= MAX_REPORTS) {
            return;
        }
        open.keySet().removeIf(other -> !other.isAlive());
        String scopes = open.entrySet().stream()
                .filter(entry -> entry.getValue().route(device, stream) != null)
                .limit(MAX_SCOPES)
                .map(entry -> entry.getValue() + " in thread " + nameOf(entry.getKey()))
                .collect(Collectors.joining(", "));
        if (scopes.isEmpty()) {
            return;
        }
        StackTraceElement place = FrameworkFrames.caller();
        if (reported.add(place)) {
            report(nameOf(thread), device, scopes, place);
        }
    }

    private static void report(String thread, int device, String scopes, StackTraceElement place) {
        try {
            LOGGER.log(
                    Level.WARNING,
                    "thread {0} allocated on device {1} outside every scope while others are open: {2}; if it works for"
                            + " one of them, carry the scope to it with ScopeCarrier; at {3}",
                    thread,
                    device,
                    scopes,
                    place);
        } catch (RuntimeException broken) {
            // A diagnostic must not fail the allocation that it is about.
        }
    }

    private static String nameOf(Thread thread) {
        return thread.getName().isEmpty() ? "#" + thread.threadId() : thread.getName();
    }
}
