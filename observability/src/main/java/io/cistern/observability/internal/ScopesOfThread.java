package io.cistern.observability.internal;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Holds the scopes that a thread is in, as far as its events tell, the innermost first. Scopes that carried code left
/// open ended without an event: they count until a scope around them ends, or until there are too many.
///
/// **Threads.** Belongs to one thread.
public final class ScopesOfThread<T> {
    private static final int MOST = 64;

    private final Deque<Entered<T>> inside = new ArrayDeque<>();
    private final Consumer<T> ended;

    private record Entered<T>(String allocator, T mark) {}

    /// @param ended takes the mark of each scope that has ended
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

    /// Leaves the innermost scope of an allocator and those within it. A scope whose start is unknown is ignored.
    public void leave(String allocator) {
        if (inside.stream().anyMatch(scope -> scope.allocator.equals(allocator))) {
            Entered<T> left;
            do {
                left = inside.pop();
                ended.accept(left.mark);
            } while (!left.allocator.equals(allocator));
        }
    }

    /// Returns the allocator of the innermost scope; null outside all.
    public @Nullable String innermost() {
        Entered<T> scope = inside.peek();
        return scope == null ? null : scope.allocator;
    }
}
