package io.cistern;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.StackRoom;
import io.cistern.internal.routing.Router;

/// Notifies observers of a program's allocations and frees: the steps before and after each call. If an
/// observer fails, or finds the Java heap full, nothing changes for the program.
///
/// **Threads.** Any.
final class ObservedCalls {
    private static final Events.Factory<Router> ALLOCATED = (router, _, address, stream, nanos, ended) -> router.ofLive(
            address,
            (at, byteSize, route) ->
                    new MemoryEvent.Allocated(route.toString(), route.device(), stream, at, byteSize, nanos, ended));

    private static final Events.Factory<Router> FREED = (router, _, address, stream, _, _) -> router.ofLive(
            address,
            (at, byteSize, route) -> new MemoryEvent.Freed(route.toString(), route.device(), stream, at, byteSize));

    /// Used instead of a time if no observer is notified of blocks.
    private static final long NO_TIME = 0;

    private final Router router;
    private final Observers observers;

    ObservedCalls(Router router, Observers observers) {
        this.router = router;
        this.observers = observers;
    }

    /// Called before an allocation, as [#freeing] is before a free.
    ///
    /// @return the time, for [#allocated]
    long begin() {
        StackRoom.require();
        return observers.anyOfBlocks() ? System.nanoTime() : NO_TIME;
    }

    /// Called after an allocation, failed or not. It delivers the events that the allocator posted, and then the
    /// block's own event, with a later time.
    ///
    /// @param address 0 if the allocation failed
    void allocated(long address, long stream, long begun) {
        if (address == 0 || begun == NO_TIME) {
            observers.deliver();
            return;
        }
        long ended = System.nanoTime();
        long told = observers.deliver() ? System.nanoTime() : ended;
        observers.tell(ALLOCATED, router, -1, address, stream, ended - begun, told);
    }

    /// Called before a free. The caller calls [Observers#deliver] after the free.
    void freeing(long address, long stream) {
        StackRoom.require();
        if (observers.anyOfBlocks()) {
            observers.tell(FREED, router, -1, address, stream, 0, 0);
        }
    }
}
