package io.cistern.handles;

import io.cistern.graph.GraphMemory;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A handle that a pool created, with its workspaces and the graphs that need it.
///
/// **Threads.** One thread at a time has it; graphs end on any.
///
/// @param <H> the handle
final class PooledHandle<H> {
    /// A graph whose launches may use what the handle has.
    ///
    /// @param <H> the handle
    private record GraphUse<H>(DeviceHandles<H> owner, PooledHandle<H> handle, GraphMemory graph) implements Runnable {
        /// The graph is gone.
        @Override
        public void run() {
            handle.workspaces.graphIsGone(graph);
            if (handle.endUse(graph)) {
                owner.destroy(handle);
            }
        }
    }

    final Workspaces<H> workspaces;

    /// Set once, before any other thread sees this.
    private @Nullable H raw;

    /// The thread that had it last, by its id; 0 for none. When it came back, on the clock of the pool. Both
    /// are guarded by the lock of its [DeviceHandles].
    long lastThread;

    long idleSince;

    /// The next one in the stack of [IdleHandles].
    @Nullable
    PooledHandle<H> below;

    /// Graphs that exist and need it; guarded by the monitor of this set.
    private final Set<GraphMemory> graphs = new HashSet<>();

    /// Whether it is to be destroyed when the last of them is gone; guarded by the same.
    private boolean ended;

    PooledHandle(Workspaces<H> workspaces) {
        this.workspaces = workspaces;
    }

    boolean isCreated() {
        return raw != null;
    }

    H raw() {
        return Objects.requireNonNull(raw);
    }

    void created(H handle) {
        raw = handle;
    }

    /// Keeps it, with its workspaces, as long as a graph exists.
    ///
    /// @return false if the graph is gone already: the capture has ended since
    boolean keepFor(GraphMemory graph, DeviceHandles<H> owner) {
        synchronized (graphs) {
            if (!graphs.add(graph)) {
                return true;
            }
        }
        boolean kept = false;
        try {
            kept = graph.whenGone(new GraphUse<>(owner, this, graph));
        } finally {
            if (!kept) {
                endUse(graph);
            }
        }
        return kept;
    }

    /// @return whether it is to be destroyed now
    private boolean endUse(GraphMemory graph) {
        synchronized (graphs) {
            return graphs.remove(graph) && graphs.isEmpty() && ended;
        }
    }

    /// Says that no thread will have it again.
    ///
    /// @return whether it is to be destroyed now; else the last of its graphs does that
    boolean end() {
        synchronized (graphs) {
            ended = true;
            return graphs.isEmpty();
        }
    }
}
