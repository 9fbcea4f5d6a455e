package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.List;

/// The threads that close allocators. Each waits for the threads in calls of its allocator; where one of these
/// closes another allocator meanwhile, and so on, and one waits for a call that the first thread is in, all would
/// wait for ever. Whoever would close such a ring is told so instead.
///
/// **Threads.** Any; the lock covers no wait.
final class ClosingThreads {
    /// By the threads that wait.
    private final List<Closing> underWay = new ArrayList<>();

    /// One thread that closes an allocator.
    ///
    /// @param calls that the thread is in
    /// @param routes to the allocator
    record Closing(ActiveCalls calls, List<Route> routes) {
        private boolean waitsFor(Closing other) {
            return other.calls.include(routes);
        }
    }

    /// Enters a thread.
    ///
    /// @return false if it would wait for itself: then it is not entered
    synchronized boolean begin(Closing closing) {
        return !waitsForItself(closing) && underWay.add(closing);
    }

    /// Forgets it.
    @SuppressWarnings("ReferenceEquality") // two threads may close alike
    synchronized void end(Closing closing) {
        underWay.removeIf(each -> each == closing);
    }

    /// Whether a thread that closes an allocator waits for its own end: at once, or by way of others.
    synchronized boolean waitsForItself(Closing closing) {
        List<Closing> reached = new ArrayList<>(List.of(closing));
        for (int i = 0; i < reached.size(); i++) {
            Closing each = reached.get(i);
            if (each.waitsFor(closing)) {
                return true;
            }
            underWay.stream()
                    .filter(other -> !reached.contains(other) && each.waitsFor(other))
                    .forEach(reached::add);
        }
        return false;
    }
}
