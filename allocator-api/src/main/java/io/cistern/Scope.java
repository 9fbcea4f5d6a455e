package io.cistern;

import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.ThreadNames;
import io.cistern.internal.routing.ScopeStack;
import io.cistern.internal.routing.ScopeStacks;
import java.lang.ref.Reference;
import org.jspecify.annotations.Nullable;

/// A region of code in which one allocator or pool serves a thread's allocations, on all devices and
/// streams or on those that [ScopeOptions] names. [Allocator#enter()] opens the region, and [#close] ends
/// it.
///
/// ```java
/// try (MemoryPool pool = MemoryPool.of("nccl"); Scope scope = pool.enter()) {
///     DeviceBuffer inside = DeviceBuffer.allocate(bytes, stream);        // from the pool
/// }
/// DeviceBuffer outside = DeviceBuffer.allocate(bytes, stream);           // from the current allocator again
/// ```
///
/// Scopes nest. If several scopes match the device and stream of an allocation, the innermost serves it. A
/// scope determines only where memory comes from and [which limit][ScopeOptions#limit] it is charged to:
/// blocks may outlive the scope, and may be freed anywhere.
///
/// **Threads.** A scope belongs to the platform or virtual thread that opened it. That thread must close
/// its scopes, the innermost first. Other threads are not in the scope unless a [ScopeCarrier] carries it
/// to them.
public final class Scope implements AutoCloseable {
    private final ScopeStacks stacks;
    private final Observers observers;
    private final Allocator allocator;
    private final @Nullable ScopeStack outer;
    private final ScopeStack scopes;
    private final Runnable whenClosed;
    private final Thread owner = Thread.currentThread();
    private final OpenScopes.@Nullable Entry entry;
    private boolean closed;

    Scope(
            DeviceMemory memory,
            Allocator allocator,
            @Nullable ScopeStack outer,
            ScopeStack scopes,
            Runnable whenClosed) {
        this.stacks = memory.scopes;
        this.observers = memory.observers;
        this.allocator = allocator;
        this.outer = outer;
        this.scopes = scopes;
        this.whenClosed = whenClosed;
        OpenScopes watch = memory.openScopes;
        this.entry = watch == null ? null : watch.entered(this, allocator);
        if (observers.any()) {
            observers.tell(Events.SCOPE_ENTERED, allocator.toString());
        }
        stacks.set(scopes);
    }

    /// Returns the allocator that serves the scope.
    public Allocator allocator() {
        return allocator;
    }

    /// Ends the scope. Closing twice does nothing.
    ///
    /// @throws WrongThreadException if another thread opened the scope
    /// @throws IllegalStateException if this is not the thread's innermost scope; nothing changes then
    @Override
    @SuppressWarnings("ReferenceEquality") // regions that look alike are still different scopes
    public void close() {
        if (Thread.currentThread() != owner) {
            throw new WrongThreadException(
                    "the scope of " + allocator + " was opened by thread " + ThreadNames.of(owner));
        }
        if (closed) {
            return;
        }
        ScopeStack innermost = stacks.current();
        if (innermost != scopes) {
            throw new IllegalStateException("the scope of " + allocator + " is not the innermost: "
                    + (innermost == null
                            ? "the thread is in no scope now; close it in the code that opened it, before a carrier changes"
                                    + " the scopes"
                            : "the scope of " + innermost + " must be closed first"));
        }
        closed = true;
        try {
            if (entry != null) {
                entry.closed();
            }
            stacks.set(outer);
            scopes.ended();
            if (observers.any()) {
                observers.tell(Events.SCOPE_LEFT, allocator.toString());
            }
            whenClosed.run();
        } finally {
            Reference.reachabilityFence(this); // a scope that closes was not dropped
        }
    }

    /// Returns the allocator, the thread and whether the scope is closed, for logs.
    @Override
    public String toString() {
        return "Scope[" + allocator + ", thread " + ThreadNames.of(owner) + (closed ? ", closed" : "") + "]";
    }
}
