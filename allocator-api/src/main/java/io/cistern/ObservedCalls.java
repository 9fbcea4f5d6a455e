package io.cistern;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.StackRoom;
import io.cistern.internal.routing.Router;

/// A program's allocations and frees while somebody observes them: what comes before and after each. What
/// observers do, and what they need of the Java heap, changes nothing for the program.
///
/// **Threads.** Any.
final class ObservedCalls {
    private static final Events.Maker<Router> ALLOCATED = (router, _, address, stream, begun, ended) -> router.ofLive(
            address,
            (at, byteSize, route) -> new MemoryEvent.Allocated(
                    route.toString(), route.device(), stream, at, byteSize, ended - begun, ended));

    private static final Events.Maker<Router> FREED = (router, _, address, stream, _, _) -> router.ofLive(
            address,
            (at, byteSize, route) -> new MemoryEvent.Freed(route.toString(), route.device(), stream, at, byteSize));

    /// Where no observer is told of blocks.
    private static final long NO_TIME = 0;

    private final Router router;
    private final Observers observers;

    ObservedCalls(Router router, Observers observers) {
        this.router = router;
        this.observers = observers;
    }

    /// Before an allocation, as [#freeing] is before a free.
    ///
    /// @return the time, for [#allocated]
    long begin() {
        StackRoom.require();
        return observers.anyOfBlocks() ? System.nanoTime() : NO_TIME;
    }

    /// After an allocation, whatever came of it. What the allocator posted is told then too.
    ///
    /// @param address 0 if there is none
    void allocated(long address, long stream, long begun) {
        if (address != 0 && begun != NO_TIME) {
            observers.tell(ALLOCATED, router, -1, address, stream, begun, System.nanoTime());
        } else {
            observers.deliver();
        }
    }

    /// Before a free, after which [Observers#deliver] is called.
    void freeing(long address, long stream) {
        StackRoom.require();
        if (observers.anyOfBlocks()) {
            observers.tell(FREED, router, -1, address, stream, 0, 0);
        }
    }
}
