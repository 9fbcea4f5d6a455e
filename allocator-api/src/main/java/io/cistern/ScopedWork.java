package io.cistern;

import io.cistern.internal.routing.ScopeTarget;
import io.cistern.internal.routing.Router;
import org.jspecify.annotations.Nullable;

/// A scope in the form of code that runs in it: `memory.where(pool).run(() -> …)`.
///
/// ```java
/// memory.where(pool).onStream(0, stream).within(limit).run(() -> step());
/// ```
///
/// Threads that the code forks in a [java.util.concurrent.StructuredTaskScope] are in the scope too, through a
/// [ScopedValue]; other threads are not.
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class ScopedWork {
    private final Router router;
    private final Allocator allocator;
    private final @Nullable MemoryPool pool;
    private final ScopeTarget reach;

    /// @param pool what is in use meanwhile, or null
    ScopedWork(Router router, Allocator allocator, @Nullable MemoryPool pool, ScopeTarget reach) {
        this.router = router;
        this.allocator = allocator;
        this.pool = pool;
        this.reach = reach;
    }

    /// The same for one device, on all its streams.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public ScopedWork onDevice(int device) {
        return reaching(reach.onDevice(allocator.opened().checkedDevice(device)));
    }

    /// The same for one stream of one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public ScopedWork onStream(int device, long stream) {
        return reaching(reach.onStream(allocator.opened().checkedDevice(device), stream));
    }

    /// The same with what it allocates charged to a limit as well: see [Allocator#enter(MemoryLimit)].
    public ScopedWork within(MemoryLimit limit) {
        return reaching(reach.within(limit.handle()));
    }

    private ScopedWork reaching(ScopeTarget other) {
        return new ScopedWork(router, allocator, pool, other);
    }

    /// Runs code in the scope.
    ///
    /// @throws IllegalStateException if its allocator or pool is closed
    public void run(Runnable body) {
        call(() -> {
            body.run();
            return true;
        });
    }

    /// Calls code in the scope.
    ///
    /// @throws IllegalStateException if its allocator or pool is closed
    /// @throws X what the code throws
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> body) throws X {
        if (pool != null) {
            pool.beginUse();
        }
        try {
            return router.callIn(allocator.opened().region(router.region(), reach), body);
        } finally {
            if (pool != null) {
                pool.endUse();
            }
        }
    }
}
