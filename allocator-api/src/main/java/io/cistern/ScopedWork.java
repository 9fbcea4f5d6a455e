package io.cistern;

import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Router;
import org.jspecify.annotations.Nullable;

/// A scope in the form of code that runs in it: `memory.where(pool).run(() -> …)`.
///
/// Threads that the code forks in a [java.util.concurrent.StructuredTaskScope] are in the scope too, through a
/// [ScopedValue]; other threads are not.
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class ScopedWork {
    private final Router router;
    private final Allocator allocator;
    private final @Nullable MemoryPool pool;

    /// @param pool what is in use meanwhile, or null
    ScopedWork(Router router, Allocator allocator, @Nullable MemoryPool pool) {
        this.router = router;
        this.allocator = allocator;
        this.pool = pool;
    }

    /// Runs code in the scope.
    ///
    /// @throws IllegalStateException if its pool is closed
    public void run(Runnable body) {
        call(() -> {
            body.run();
            return true;
        });
    }

    /// Calls code in the scope.
    ///
    /// @throws IllegalStateException if its pool is closed
    /// @throws X what the code throws
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> body) throws X {
        if (pool != null) {
            pool.beginUse();
        }
        try {
            return router.callIn(Region.of(router.region(), allocator.routes()), body);
        } finally {
            if (pool != null) {
                pool.endUse();
            }
        }
    }
}
