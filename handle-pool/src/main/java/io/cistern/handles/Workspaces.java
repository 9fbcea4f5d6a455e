package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.Streams;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.names.Failures;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The workspaces of one handle: device memory for each stream that the handle was set to, from the device's
/// current allocator. In a capture, the memory comes from the graph's own memory and lives as long as the
/// graph.
///
/// 1. The thread that has the handle [binds][#bind] it to a stream. From then on the workspace of that stream
///    is *bound*: the thread's next calls of the library may use it.
/// 2. Any thread may [give back][#release] workspaces that are not bound, after all work of the device. A
///    stream that ends gives its own workspace back in its order. A handle that has [#MAX_KEPT] gives back the
///    one that was bound longest ago before it takes another.
///
/// **Threads.** Guarded by the monitor, which no thread holds during a call of the library, the driver or an
/// allocator.
///
/// @param <H> the handle
final class Workspaces<H> {
    private static final class Workspace {
        final long stream;

        /// The graph whose launches use the workspace, if any.
        final Optional<GraphMemory> graph;

        final long address;

        /// Whether it belongs to the per-thread default stream of a thread that had the handle before.
        boolean orphaned;

        Workspace(long stream, Optional<GraphMemory> graph, long address) {
            this.stream = stream;
            this.graph = graph;
            this.address = address;
        }

        boolean isOf(long another, Optional<GraphMemory> anotherGraph) {
            return !orphaned && stream == another && graph.equals(anotherGraph);
        }
    }

    /// The most workspaces of streams that a handle keeps. A program that uses more streams with one handle pays
    /// for an allocation when it changes to another stream.
    static final int MAX_KEPT = 16;

    final int device;
    private final HandleLibrary<H> library;
    private final DeviceMemory memory;
    private final long byteSize;

    /// Those that were bound last come last.
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
            workspace = allocated(stream, graph);
        }
        library.setStream(handle, stream);
        library.setWorkspace(handle, workspace.address, byteSize);
    }

    private Workspace allocated(long stream, Optional<GraphMemory> graph) {
        dropOldest();
        long address = memory.current(device).allocate(byteSize, device, stream);
        boolean added = false;
        try {
            Workspace workspace = add(new Workspace(stream, graph, address));
            added = true;
            return workspace;
        } finally {
            if (!added) {
                memory.free(address, stream);
            }
        }
    }

    /// Gives back the workspace that was bound longest ago, if the handle has as many as it keeps. While a stream
    /// of the device is captured, it keeps more.
    private void dropOldest() {
        if (!memory.moduleSupport().isCapturing(device)) {
            free(takeOldest());
        }
    }

    private synchronized List<Workspace> takeOldest() {
        List<Workspace> ofStreams =
                all.stream().filter(workspace -> workspace.graph.isEmpty()).toList();
        List<Workspace> oldest = ofStreams.stream()
                .filter(workspace -> !workspace.equals(bound))
                .limit(Math.max(0, ofStreams.size() + 1 - MAX_KEPT))
                .toList();
        all.removeAll(oldest);
        return oldest;
    }

    private synchronized @Nullable Workspace boundTo(long stream, Optional<GraphMemory> graph) {
        for (int i = 0; i < all.size(); i++) { // no iterator: threads that change streams make no garbage
            Workspace workspace = all.get(i);
            if (workspace.isOf(stream, graph)) {
                all.remove(i);
                all.add(workspace);
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

    /// Notes that the thread that had the handle no longer uses it. Needs no Java heap.
    synchronized void unbind() {
        bound = null;
        for (int i = 0; i < all.size(); i++) { // no iterator, as above
            Workspace workspace = all.get(i);
            workspace.orphaned |= workspace.stream == Streams.PER_THREAD_DEFAULT && workspace.graph.isEmpty();
        }
    }

    /// Gives back the workspaces of per-thread default streams that no thread can use again.
    void freeOrphans() {
        free(take(workspace -> workspace.orphaned));
    }

    /// Gives back the workspaces that no call can be using.
    ///
    /// @return the number of bytes given back
    long release() {
        return free(take(workspace -> workspace.graph.isEmpty() && !workspace.equals(bound)));
    }

    /// Gives back all workspaces that no graph needs. No thread may have the handle.
    void releaseAll() {
        free(take(workspace -> workspace.graph.isEmpty()));
    }

    /// Gives back the workspace of a stream that ends and that nobody may use any more. The stream exists until
    /// this returns, so the free can still name it.
    void streamEnds(long stream) {
        long _ = free(
                take(workspace -> workspace.isOf(stream, Optional.empty())),
                workspace -> memory.free(workspace.address, stream));
    }

    /// Gives back the workspaces of a graph that is gone.
    void graphIsGone(GraphMemory graph) {
        free(take(workspace -> workspace.graph.filter(graph::equals).isPresent()));
    }

    private synchronized List<Workspace> take(Predicate<Workspace> which) {
        List<Workspace> taken = all.stream().filter(which).toList();
        all.removeAll(taken);
        return taken;
    }

    /// Frees after all work of the device, since a workspace's own stream may have ended.
    private long free(List<Workspace> gone) {
        return free(gone, workspace -> memory.moduleSupport().freeBehindAll(workspace.address));
    }

    /// Frees workspaces; one that can't be freed now is kept for the next time.
    private long free(List<Workspace> gone, Consumer<Workspace> freeing) {
        Failures failures = new Failures();
        for (Workspace workspace : gone) {
            try {
                freeing.accept(workspace);
            } catch (RuntimeException | Error failure) {
                keepIfLive(workspace);
                failures.add(failure);
            }
        }
        failures.rethrow();
        return gone.size() * byteSize;
    }

    private synchronized void keepIfLive(Workspace workspace) {
        if (memory.moduleSupport().isLive(workspace.address)) {
            all.add(workspace);
        }
    }

    /// Returns the number of workspaces.
    synchronized int count() {
        return all.size();
    }

    /// Returns the graph that a stream is captured into, if any.
    Optional<GraphMemory> graphOf(long stream) {
        return memory.moduleSupport().isCaptured(device, stream)
                ? GraphMemory.ofCapture(memory, device, stream)
                : Optional.empty();
    }
}
