package io.cistern;

import io.cistern.internal.routing.ScopeStack;
import io.cistern.internal.routing.ScopeStacks;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Carries the scopes that a thread is in to other threads.
///
/// ```java
/// ScopeCarrier here = ScopeCarrier.capture(memory);
/// executor.submit(here.wrap(() -> work()));                      // work() allocates as here
/// ExecutorService inScope = here.executorService(executor);      // and so do all of its tasks
/// ```
///
/// While wrapped code runs, its thread is in the captured scopes and in no others. After that the thread is
/// in its own scopes again, even if the code left a scope open.
///
/// A carrier keeps no pool open: after a pool has closed, allocating in a scope of that pool throws an
/// [IllegalStateException].
///
/// **Threads.** Immutable; several threads may use a carrier concurrently.
public final class ScopeCarrier {
    private final ScopeStacks stacks;
    private final @Nullable ScopeStack scopes;

    private ScopeCarrier(ScopeStacks stacks, @Nullable ScopeStack scopes) {
        this.stacks = stacks;
        this.scopes = scopes;
    }

    /// Captures the calling thread's scopes in the process's own device memory. If the thread is in no
    /// scope, the carrier is [empty][#isEmpty].
    public static ScopeCarrier capture() {
        return capture(DeviceMemory.system());
    }

    /// Captures the calling thread's scopes.
    public static ScopeCarrier capture(DeviceMemory memory) {
        ScopeStack scopes = memory.scopes.current();
        if (scopes != null) {
            scopes.carried();
        }
        return new ScopeCarrier(memory.scopes, scopes);
    }

    /// Returns a carrier of no scopes: the current allocator serves the code that it wraps.
    public static ScopeCarrier none(DeviceMemory memory) {
        return new ScopeCarrier(memory.scopes, null);
    }

    /// Returns whether no scopes were captured.
    public boolean isEmpty() {
        return scopes == null;
    }

    /// Replaces the calling thread's scopes with the captured ones. This is for frameworks that
    /// set and reset the context of a thread in two separate calls. Such a framework first captures a
    /// carrier of the thread's own scopes, then restores this carrier, and later restores the carrier of
    /// the thread's own scopes. Other code should use [#run], which can't forget the last step.
    public void restore() {
        stacks.set(scopes);
    }

    /// Runs code in the captured scopes, on the calling thread.
    public void run(Runnable body) {
        callInside(() -> {
            body.run();
            return true;
        });
    }

    /// Calls code in the captured scopes, on the calling thread.
    ///
    /// @throws Exception if the code throws it
    public <T> T call(Callable<T> body) throws Exception {
        return callInside(body::call);
    }

    private <T, X extends Throwable> T callInside(ScopedValue.CallableOp<T, X> body) throws X {
        ScopeStack before = stacks.current();
        stacks.set(scopes);
        try {
            return body.call();
        } finally {
            stacks.set(before);
        }
    }

    /// Returns a task that runs in the captured scopes.
    public Runnable wrap(Runnable task) {
        return () -> run(task);
    }

    /// Returns a task that is called in the captured scopes.
    public <T> Callable<T> wrap(Callable<T> task) {
        return () -> call(task);
    }

    /// Returns an executor whose tasks run in the captured scopes, for use with
    /// [java.util.concurrent.CompletableFuture], for example.
    public Executor executor(Executor executor) {
        return task -> executor.execute(wrap(task));
    }

    /// Returns a factory of threads whose tasks run in the captured scopes.
    public ThreadFactory threadFactory(ThreadFactory factory) {
        return task -> factory.newThread(wrap(task));
    }

    /// Returns an executor service whose tasks run in the captured scopes. Shutting it down shuts down the
    /// given executor service.
    public ExecutorService executorService(ExecutorService executor) {
        return new CarryingExecutor(executor);
    }

    private final class CarryingExecutor extends AbstractExecutorService {
        private final ExecutorService executor;

        CarryingExecutor(ExecutorService executor) {
            this.executor = executor;
        }

        @Override
        public void execute(Runnable task) {
            executor.execute(wrap(task));
        }

        @Override
        public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks) throws InterruptedException {
            List<Callable<T>> wrapped = new ArrayList<>();
            for (Callable<T> task : tasks) {
                wrapped.add(wrap(task));
            }
            return executor.invokeAll(wrapped);
        }

        @Override
        public void shutdown() {
            executor.shutdown();
        }

        @Override
        public List<Runnable> shutdownNow() {
            return executor.shutdownNow();
        }

        @Override
        public boolean isShutdown() {
            return executor.isShutdown();
        }

        @Override
        public boolean isTerminated() {
            return executor.isTerminated();
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
            return executor.awaitTermination(timeout, unit);
        }
    }
}
