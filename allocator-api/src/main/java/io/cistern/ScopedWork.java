package io.cistern;

import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Router;

/// A scope in the form of code that runs in it: `memory.where(pool).run(() -> …)`.
///
/// Threads that the code forks in a [java.util.concurrent.StructuredTaskScope] are in the scope too, through a
/// [ScopedValue]; other threads are not.
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class ScopedWork {
    private final Router router;
    private final Allocator allocator;

    ScopedWork(Router router, Allocator allocator) {
        this.router = router;
        this.allocator = allocator;
    }

    /// Runs code in the scope.
    public void run(Runnable body) {
        call(() -> {
            body.run();
            return true;
        });
    }

    /// Calls code in the scope.
    ///
    /// @throws X what the code throws
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> body) throws X {
        return router.callIn(Region.of(router.region(), allocator.routes()), body);
    }
}
