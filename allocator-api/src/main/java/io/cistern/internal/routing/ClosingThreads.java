package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The threads that close allocators. Each waits for the threads in calls of its allocator; where one of these
/// closes another allocator meanwhile, and so on, and one waits for a call that the first thread is in, all would
/// wait for ever. A thread that would close such a ring gets an exception instead.
///
/// **The calls that a thread is in.** An allocation on a platform thread stands in the thread's own counters. A free
/// leaves no trace before it has ended, and an allocation on a virtual thread none that tells which thread it is: to
/// leave one would make each of them slower. So these are looked for on the stack, by the methods of the allocator's
/// class.
///
/// **Threads.** Any; the lock covers no wait.
final class ClosingThreads {
    private static final Set<String> FREES = Set.of("free");
    private static final Set<String> ALL = Set.of("free", "allocate", "tryAllocate");

    /// By the threads that wait.
    private final List<Closing> underWay = new ArrayList<>();

    /// One thread that closes an allocator; it stays in the calls that it is in.
    ///
    /// @param own its counters; null for a virtual thread
    /// @param onStack of the methods on its stack that may be calls of which the counters do not tell
    /// @param routes to the allocator
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

        /// Whether the thread is in a call of an allocator; true also if it is in one of another allocator of the
        /// same class which has frees or allocations under way that only the stack tells of.
        private boolean isInside(List<Route> ofAllocator) {
            boolean possible = false;
            for (Route route : ofAllocator) {
                if (own != null && route.isAllocating(own)) {
                    return true;
                }
                possible |= route.live() != 0 || (own == null && route.isAllocatingShared());
            }
            DeviceAllocator maker = ofAllocator.getFirst().maker;
            return possible && onStack.stream().anyMatch(type -> type.isInstance(maker));
        }
    }

    /// Enters a thread.
    ///
    /// @return false if it would wait for itself: then it is not entered
    synchronized boolean begin(Closing closing) {
        return !waitsForItself(closing) && underWay.add(closing);
    }

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
