package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.Streams;
import io.cistern.graph.GraphMemory;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The workspaces of one handle: device memory for each stream that the handle was set to, from the device's
/// current allocator. In a capture it comes from the graph's own memory, and lives as long as the graph.
///
/// 1. The thread that has the handle [binds][#bind] it to a stream. The workspace of that stream is *bound*
/// from then on: the thread's next calls of the library may use it.
/// 2. Any thread may [give back][#release] those that are not bound. A free is in the order of the
/// workspace's stream, so work that uses it goes on.
///
/// **Threads.** Guarded by the monitor, which covers no call of the library, the driver or an allocator.
///
/// @param <H> the handle
final class Workspaces<H> {
    /// @param graph the graph whose launches use it, if any do
    private record Workspace(long stream, Optional<GraphMemory> graph, long address) {
        boolean isOf(long another, Optional<GraphMemory> anotherGraph) {
            return stream == another && graph.equals(anotherGraph);
        }
    }

    final int device;
    private final HandleLibrary<H> library;
    private final DeviceMemory memory;
    private final long byteSize;
    private final List<Workspace> all = new ArrayList<>();
    private @Nullable Workspace bound;

    Workspaces(HandleLibrary<H> library, DeviceMemory memory, int device, long byteSize) {
        this.library = library;
        this.memory = memory;
        this.device = device;
        this.byteSize = byteSize;
    }

    /// Sets a stream and its workspace.
    ///
    /// @param graph the graph that the stream is captured into, if any
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    void bind(H handle, long stream, Optional<GraphMemory> graph) {
        if (byteSize == 0) {
            library.setStream(handle, stream);
            return;
        }
        Workspace workspace = boundTo(stream, graph);
        if (workspace == null) {
            long address = memory.current(device).allocate(byteSize, device, stream);
            workspace = add(new Workspace(stream, graph, address));
        }
        library.setStream(handle, stream);
        library.setWorkspace(handle, workspace.address, byteSize);
    }

    private synchronized @Nullable Workspace boundTo(long stream, Optional<GraphMemory> graph) {
        for (int i = 0; i < all.size(); i++) { // no iterator: threads that change streams make no garbage
            Workspace workspace = all.get(i);
            if (workspace.isOf(stream, graph)) {
                bound = workspace;
                return workspace;
            }
        }
        return null;
    }

    private synchronized Workspace add(Workspace workspace) {
        all.add(workspace);
        bound = workspace;
        return workspace;
    }

    /// The thread that had the handle uses it no more. Calls no allocator.
    ///
    /// @return frees the workspaces that only that thread could use
    synchronized Runnable unbind() {
        bound = null;
        List<Workspace> ofThread =
                take(workspace -> workspace.stream == Streams.PER_THREAD_DEFAULT && workspace.graph.isEmpty());
        return () -> free(ofThread);
    }

    /// Gives back what no call can be using.
    ///
    /// @return bytes
    long release() {
        return free(take(workspace -> workspace.graph.isEmpty() && !workspace.equals(bound)));
    }

    /// Gives back all that no graph needs. No thread may have the handle.
    void releaseAll() {
        free(take(workspace -> workspace.graph.isEmpty()));
    }

    /// A stream ends; nobody may use it any more.
    void streamEnds(long stream) {
        free(take(workspace -> workspace.stream == stream && workspace.graph.isEmpty()));
    }

    /// A graph is gone.
    void graphIsGone(GraphMemory graph) {
        free(take(workspace -> workspace.graph.filter(graph::equals).isPresent()));
    }

    private synchronized List<Workspace> take(Predicate<Workspace> which) {
        List<Workspace> taken = List.of();
        for (Iterator<Workspace> each = all.iterator(); each.hasNext(); ) {
            Workspace workspace = each.next();
            if (which.test(workspace)) {
                taken = taken.isEmpty() ? new ArrayList<>(all.size()) : taken;
                taken.add(workspace);
                each.remove();
            }
        }
        return taken;
    }

    private long free(List<Workspace> gone) {
        for (Workspace workspace : gone) {
            if (workspace.graph.isPresent() || workspace.stream == Streams.PER_THREAD_DEFAULT) {
                memory.moduleSupport().freeBehindAll(workspace.address);
            } else {
                memory.free(workspace.address, workspace.stream);
            }
        }
        return gone.size() * byteSize;
    }

    /// How many there are.
    synchronized int count() {
        return all.size();
    }

    /// The graph that a stream is captured into.
    Optional<GraphMemory> graphOf(long stream) {
        return memory.moduleSupport().isCaptured(device, stream)
                ? GraphMemory.ofCapture(memory, device, stream)
                : Optional.empty();
    }
}
