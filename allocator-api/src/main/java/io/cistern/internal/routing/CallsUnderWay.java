package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.List;
import java.util.Set;

/// Finds out whether a thread that is about to close an allocator is in a call of that allocator, whose end it would
/// then wait for.
///
/// An allocation on a platform thread stands in the thread's own lane. A free leaves no trace before it has ended, and
/// an allocation on a virtual thread none that tells which thread it is: to leave one would make each of them slower.
/// So
/// these are looked for on the stack, by the methods of the allocator's class.
final class CallsUnderWay {
    private static final Set<String> FREES = Set.of("free");
    private static final Set<String> ALL = Set.of("free", "allocate", "tryAllocate");

    private CallsUnderWay() {}

    /// Whether the calling thread is in a call of an allocator; true also if it is in one of another allocator of the
    /// same class which has frees or allocations under way that only the stack tells of.
    ///
    /// @param routes to that allocator
    static boolean includeCaller(Lanes lanes, List<Route> routes) {
        Lane own = lanes.own();
        boolean possible = false;
        for (Route route : routes) {
            if (own != null && own.isAllocating(route)) {
                return true;
            }
            possible |= lanes.live(route) != 0 || (own == null && lanes.isAllocatingShared(route));
        }
        return possible && isOnStack(routes.getFirst().maker, own == null ? ALL : FREES);
    }

    private static boolean isOnStack(DeviceAllocator maker, Set<String> methods) {
        return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
                .walk(frames -> frames.anyMatch(frame -> methods.contains(frame.getMethodName())
                        && frame.getDeclaringClass().isInstance(maker)));
    }
}
