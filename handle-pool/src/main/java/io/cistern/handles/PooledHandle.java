package io.cistern.handles;

import io.cistern.graph.GraphMemory;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A handle that a pool created, with its workspaces and the graphs that need it.
///
/// **Threads.** One thread at a time has the handle; graphs end on any thread.
///
/// @param <H> the handle
final class PooledHandle<H> {
    /// A graph whose launches may use the handle and its workspaces.
    ///
    /// @param <H> the handle
    private record GraphUse<H>(DeviceHandles<H> owner, PooledHandle<H> handle, GraphMemory graph) implements Runnable {
        /// Handles the end of the graph.
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

    /// The id of the thread that had it last; 0 for none. Guarded by the lock of its [DeviceHandles], as is
    /// `idleSince`.
    long lastThread;

    long idleSince;

    /// The next one in the stack of [IdleHandles].
    @Nullable
    PooledHandle<H> below;

    /// Graphs that exist and need the handle; guarded by the monitor of this set.
    private final Set<GraphMemory> graphs = new HashSet<>();

    /// Whether the handle has to be destroyed when the last of the graphs is gone; guarded by the same monitor.
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

    /// Keeps the handle, with its workspaces, as long as a graph exists.
    ///
    /// @return false if the graph is already gone, because the capture has ended since
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

    /// @return whether the caller has to destroy the handle now
    private boolean endUse(GraphMemory graph) {
        synchronized (graphs) {
            return graphs.remove(graph) && graphs.isEmpty() && ended;
        }
    }

    /// Notes that no thread will have the handle again.
    ///
    /// @return whether the caller has to destroy it now; otherwise the last of its graphs does
    boolean end() {
        synchronized (graphs) {
            ended = true;
            return graphs.isEmpty();
        }
    }
}
