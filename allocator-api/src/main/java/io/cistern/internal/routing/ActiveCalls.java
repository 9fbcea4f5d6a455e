package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The calls of allocators that one thread is in while it is about to close one: whoever closes an allocator
/// waits for the calls of it that are under way.
///
/// An allocation on a platform thread stands in the thread's own thread's counters. A free leaves no trace before
/// it has ended, and an allocation on a virtual thread none that tells which thread it is: to leave one would
/// make each of them slower. So these are looked for on the stack, by the methods of the allocator's class.
///
/// **Threads.** Made by the thread itself, which stays in these calls; then any.
final class ActiveCalls {
    private static final Set<String> FREES = Set.of("free");
    private static final Set<String> ALL = Set.of("free", "allocate", "tryAllocate");

    private final ThreadTable threads;
    private final @Nullable ThreadCounters own;

    /// Of the methods on the stack that may be calls of which the thread's counters does not tell.
    private final Set<Class<?>> onStack;

    private ActiveCalls(ThreadTable threads, @Nullable ThreadCounters own, Set<Class<?>> onStack) {
        this.threads = threads;
        this.own = own;
        this.onStack = onStack;
    }

    /// Those of the calling thread.
    static ActiveCalls ofCaller(ThreadTable threads) {
        ThreadCounters own = threads.own();
        Set<String> methods = own == null ? ALL : FREES;
        Set<Class<?>> onStack = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
                .walk(frames -> frames.filter(frame -> methods.contains(frame.getMethodName()))
                        .map(StackWalker.StackFrame::getDeclaringClass)
                        .filter(DeviceAllocator.class::isAssignableFrom)
                        .collect(Collectors.toSet()));
        return new ActiveCalls(threads, own, onStack);
    }

    /// Whether a call of an allocator is among them; true also if it is one of another allocator of the same
    /// class which has frees or allocations under way that only the stack tells of.
    ///
    /// @param routes to that allocator
    boolean include(List<Route> routes) {
        boolean possible = false;
        for (Route route : routes) {
            if (own != null && own.isAllocating(route)) {
                return true;
            }
            possible |= threads.live(route) != 0 || (own == null && threads.isAllocatingShared(route));
        }
        DeviceAllocator maker = routes.getFirst().maker;
        return possible && onStack.stream().anyMatch(type -> type.isInstance(maker));
    }
}
