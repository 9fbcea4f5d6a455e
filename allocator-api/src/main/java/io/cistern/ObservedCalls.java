package io.cistern;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.StackRoom;
import io.cistern.internal.routing.Router;
import java.util.function.LongSupplier;

/// A program's allocations and frees while somebody observes them. What observers do, and what they need of
/// the Java heap, changes nothing for the program.
///
/// **Threads.** Any.
final class ObservedCalls {
    private final Router router;
    private final Observers observers;

    ObservedCalls(Router router, Observers observers) {
        this.router = router;
        this.observers = observers;
    }

    long allocate(long stream, LongSupplier allocation) {
        StackRoom.require();
        if (!observers.anyOfBlocks()) {
            try {
                return allocation.getAsLong();
            } finally {
                observers.deliver();
            }
        }
        long begun = System.nanoTime();
        long address = 0;
        try {
            address = allocation.getAsLong();
            return address;
        } finally {
            allocated(address, stream, begun, System.nanoTime());
        }
    }

    /// @param address 0 if there is none; what the allocator posted is told then too
    private void allocated(long address, long stream, long begun, long ended) {
        if (address == 0) {
            observers.deliver();
            return;
        }
        try {
            router.visitLive(
                    address,
                    (at, byteSize, route) -> observers.tell(new MemoryEvent.Allocated(
                            route.toString(), route.device(), stream, at, byteSize, ended - begun, ended)));
        } catch (OutOfMemoryError lost) {
            // Losing the event is better than losing the block.
        }
    }

    void free(long address, long stream, Runnable free) {
        StackRoom.require();
        if (observers.anyOfBlocks()) {
            freed(address, stream);
        }
        try {
            free.run();
        } finally {
            observers.deliver();
        }
    }

    private void freed(long address, long stream) {
        try {
            router.visitLive(
                    address,
                    (at, byteSize, route) -> observers.tell(
                            new MemoryEvent.Freed(route.toString(), route.device(), stream, at, byteSize)));
        } catch (OutOfMemoryError lost) {
            // As above.
        }
    }
}
