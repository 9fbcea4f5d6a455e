package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Detects threads that would wait for each other while they close allocators. A thread that closes an
/// allocator waits for the threads in calls of that allocator. One of these may itself close another allocator,
/// and so on; if one of them waits for a call that the first thread is in, all would wait for ever. A thread
/// that would close such a ring throws an exception instead.
///
/// **The calls that a thread is in.** The counters of a platform thread show its allocations. A free leaves no
/// trace before it has ended, and an allocation on a virtual thread leaves none that names the thread, since a
/// trace would make each of them slower. So this class searches the stack for them, by the methods of the
/// allocator's class.
///
/// **Threads.** Any; the lock covers no wait.
final class ClosingThreads {
    private static final Set<String> FREES = Set.of("free");
    private static final Set<String> ALL = Set.of("free", "allocate", "tryAllocate");

    /// One for each thread that waits.
    private final List<Closing> underWay = new ArrayList<>();

    /// A thread that closes an allocator from within its outer calls.
    ///
    /// @param own the thread's counters; null for a virtual thread
    /// @param onStack the classes of methods on its stack that may be calls which the counters don't show
    /// @param routes the routes to the allocator
    record Closing(@Nullable ThreadCounters own, Set<Class<?>> onStack, List<Route> routes) {
        static Closing byCaller(@Nullable ThreadCounters own, List<Route> routes) {
            Set<String> methods = own == null ? ALL : FREES;
            Set<Class<?>> onStack = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
                    .walk(frames -> frames.filter(frame -> methods.contains(frame.getMethodName()))
                            .map(StackWalker.StackFrame::getDeclaringClass)
                            .filter(DeviceAllocator.class::isAssignableFrom)
                            .collect(Collectors.toSet()));
            return new Closing(own, onStack, routes);
        }

        private boolean waitsFor(Closing other) {
            return other.isInside(routes);
        }

        /// Returns whether the thread is in a call of an allocator. Also true if the stack shows a call
        /// of another allocator of the same class, while this one may have frees or allocations under way that
        /// only the stack shows.
        private boolean isInside(List<Route> ofAllocator) {
            boolean possible = false;
            for (Route route : ofAllocator) {
                if (own != null && route.isAllocating(own)) {
                    return true;
                }
                possible |= route.live() != 0 || (own == null && route.isAllocatingShared());
            }
            DeviceAllocator allocator = ofAllocator.getFirst().allocator;
            return possible && onStack.stream().anyMatch(type -> type.isInstance(allocator));
        }
    }

    /// Adds a thread.
    ///
    /// @return false if the thread would wait for itself; then it is not added
    synchronized boolean begin(Closing closing) {
        return !waitsForItself(closing) && underWay.add(closing);
    }

    @SuppressWarnings("ReferenceEquality") // two threads may have equal objects
    synchronized void end(Closing closing) {
        underWay.removeIf(each -> each == closing);
    }

    /// Returns whether a thread that closes an allocator would wait for itself, directly or through others.
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
