package io.cistern.observability.internal;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Holds the scopes that a thread is in according to its events, the innermost first. Scopes that carried
/// code left open end without an event: they count until an enclosing scope ends, or until there are too
/// many.
///
/// **Threads.** Not thread-safe.
public final class ScopesOfThread<T> {
    private static final int MOST = 64;

    private final Deque<Entered<T>> inside = new ArrayDeque<>();
    private final Consumer<T> ended;

    private record Entered<T>(String allocator, T mark) {}

    /// @param ended receives the mark of each scope that has ended
    public ScopesOfThread(Consumer<T> ended) {
        this.ended = ended;
    }

    /// Enters a scope.
    public void enter(String allocator, T mark) {
        if (inside.size() == MOST) {
            ended.accept(inside.pop().mark); // probably left open
        }
        inside.push(new Entered<>(allocator, mark));
    }

    /// Leaves the innermost scope of an allocator and the scopes inside it. Ignores a scope that was not
    /// entered.
    public void leave(String allocator) {
        if (inside.stream().anyMatch(scope -> scope.allocator.equals(allocator))) {
            Entered<T> left;
            do {
                left = inside.pop();
                ended.accept(left.mark);
            } while (!left.allocator.equals(allocator));
        }
    }

    /// Returns the allocator of the innermost scope, or null if there is none.
    public @Nullable String innermost() {
        Entered<T> scope = inside.peek();
        return scope == null ? null : scope.allocator;
    }
}
