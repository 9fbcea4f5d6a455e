package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.Devices;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.names.Failures;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A handle that a pool created, with its workspaces: memory of the device's current allocator for the
/// stream that is set, and for the one that was set before. Each is freed in the order of its stream: when
/// a third stream is set, or when no thread has the handle any more. The previous stream's workspace is
/// also freed when memory runs out. So the allocator, not the handle, caches them for reuse.
///
/// For each graph that it is captured into, the handle has another workspace, from the graph's own memory. Both live
/// as long as the graph.
///
/// **Threads.** One thread at a time has the handle and sets streams; streams and graphs end on any thread. The
/// monitor guards the workspaces; no thread holds it during a call of the library, the driver or an allocator. A
/// workspace's own monitor is held while it is freed, so that its stream can't end meanwhile.
///
/// @param <H> the handle
final class PooledHandle<H> {
    /// Memory that is freed once, by whichever thread comes first.
    static final class Workspace {
        private final long address;

        /// The stream whose work uses it.
        private final long stream;

        private boolean freed;

        Workspace(long address, long stream) {
            this.address = address;
            this.stream = stream;
        }

        /// Frees the memory, unless it is already free; a second thread waits for the first. No other
        /// thread can free on a thread's own default stream, so such memory is freed on the legacy default
        /// stream, which waits for that one.
        synchronized boolean free(DeviceMemory memory) {
            if (freed) {
                return false;
            }
            boolean ofThread = stream == Streams.PER_THREAD_DEFAULT;
            try {
                memory.free(address, ofThread ? Streams.LEGACY_DEFAULT : stream);
            } catch (UnusableStreamException captured) {
                // It is freed later.
            }
            freed = true;
            return true;
        }
    }

    /// The stream and the workspace that launches of a graph use.
    private record GraphUse(GraphMemory graph, long stream, long workspace) {}

    /// When its last thread returned it, by [System#nanoTime]. Guarded by the monitor of the idle handles.
    long idleSince;

    private final HandleLibrary<H> library;
    private final DeviceMemory memory;
    private final int device;
    private final long byteSize;
    private final Consumer<PooledHandle<H>> destroy;

    /// Set once, before any other thread sees this.
    private @Nullable H raw;

    /// The workspace of the stream that is set.
    private @Nullable Workspace bound;

    /// The workspace of the stream that was set before.
    private @Nullable Workspace before;

    /// The workspaces that are set, and those taken away but not yet freed.
    private final List<Workspace> workspaces = new ArrayList<>();

    private final List<GraphUse> graphUses = new ArrayList<>();

    /// Whether to destroy the handle once no graph needs it.
    private boolean ended;

    /// @param destroy called when the last graph is gone that needed a handle which has [ended][#end]
    PooledHandle(HandleLibrary<H> library, DeviceMemory memory, int device, Consumer<PooledHandle<H>> destroy) {
        this.library = library;
        this.memory = memory;
        this.device = device;
        this.byteSize = library.workspaceBytes(device);
        this.destroy = destroy;
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

    /// Sets a stream and its workspace, in the device's context.
    ///
    /// @return whether they stay set; false if they end with a capture
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    boolean bind(long stream) {
        GraphUse captured = graphUse(stream);
        long address = captured == null ? workspaceFor(stream) : captured.workspace;
        Devices devices = memory.driver().devices();
        long before = devices.enterContext(device);
        try {
            library.setStream(raw(), stream);
            if (byteSize > 0) {
                library.setWorkspace(raw(), address, byteSize);
            }
        } finally {
            devices.leaveContext(device, before);
        }
        return captured == null;
    }

    private long workspaceFor(long stream) {
        if (byteSize == 0) {
            return 0;
        }
        long address = boundTo(stream);
        if (address == 0) {
            free(takeBefore());
            address = memory.current(device).allocate(byteSize, device, stream);
            bind(new Workspace(address, stream));
        }
        return address;
    }

    /// Returns 0 if the stream has no workspace.
    private synchronized long boundTo(long stream) {
        if (isOf(before, stream)) {
            Workspace other = bound;
            bound = before;
            before = other;
        }
        Workspace found = bound;
        return found != null && found.stream == stream ? found.address : 0;
    }

    private static boolean isOf(@Nullable Workspace workspace, long stream) {
        return workspace != null && workspace.stream == stream;
    }

    private synchronized void bind(Workspace workspace) {
        workspaces.add(workspace);
        before = bound;
        bound = workspace;
    }

    synchronized @Nullable Workspace takeBound() {
        Workspace taken = bound;
        bound = null;
        return taken;
    }

    /// Takes away the workspace that no call can be using.
    synchronized @Nullable Workspace takeBefore() {
        Workspace taken = before;
        before = null;
        return taken;
    }

    /// Frees a workspace that was taken away.
    ///
    /// @return its bytes
    long free(@Nullable Workspace workspace) {
        if (workspace == null || !workspace.free(memory)) {
            return 0;
        }
        forget(workspace);
        return byteSize;
    }

    private synchronized void forget(Workspace workspace) {
        workspaces.remove(workspace);
    }

    /// Gives back the workspaces of a stream that ends and that nobody may use any more. The stream exists until
    /// this returns, so the frees can still name it, including one that another thread has begun.
    void streamEnds(long stream) {
        for (Workspace each : takeOf(stream)) {
            long _ = free(each);
        }
    }

    private synchronized List<Workspace> takeOf(long stream) {
        List<Workspace> taken =
                workspaces.stream().filter(each -> each.stream == stream).toList();
        if (isOf(bound, stream)) {
            bound = null;
        }
        if (isOf(before, stream)) {
            before = null;
        }
        return taken;
    }

    /// @return null if the stream is not captured, or the capture has ended since
    private @Nullable GraphUse graphUse(long stream) {
        Optional<GraphMemory> graph = memory.moduleSupport().isCaptured(device, stream)
                ? GraphMemory.ofCapture(memory, device, stream)
                : Optional.empty();
        if (graph.isEmpty()) {
            return null;
        }
        GraphUse known = known(graph.get(), stream);
        return known == null ? addedUse(graph.get(), stream) : known;
    }

    private synchronized @Nullable GraphUse known(GraphMemory graph, long stream) {
        return graphUses.stream()
                .filter(use -> use.stream == stream && use.graph.equals(graph))
                .findFirst()
                .orElse(null);
    }

    private @Nullable GraphUse addedUse(GraphMemory graph, long stream) {
        long address = byteSize == 0 ? 0 : memory.current(device).allocate(byteSize, device, stream);
        GraphUse use = null;
        boolean kept = false;
        try {
            use = new GraphUse(graph, stream, address);
            synchronized (this) {
                graphUses.add(use);
            }
            kept = graph.whenGone(() -> graphIsGone(graph));
            return kept ? use : null;
        } finally {
            if (!kept) {
                drop(use);
                memory.free(address, stream);
            }
        }
    }

    private synchronized void drop(@Nullable GraphUse use) {
        graphUses.remove(use);
    }

    private void graphIsGone(GraphMemory graph) {
        long behindAll = memory.moduleSupport().streamBehindAll(device); // first: if it is refused, this runs again
        List<GraphUse> gone;
        boolean last;
        synchronized (this) {
            gone = graphUses.stream().filter(use -> use.graph.equals(graph)).toList();
            graphUses.removeAll(gone);
            last = ended && !gone.isEmpty() && graphUses.isEmpty();
        }
        Failures failures = new Failures();
        gone.forEach(use -> failures.gather(() -> memory.free(use.workspace, behindAll)));
        if (last) {
            failures.gather(() -> destroy.accept(this));
        }
        failures.rethrow();
    }

    /// Records that no thread will use the handle again.
    ///
    /// @return whether the caller has to destroy it now; if not, it is destroyed once its last graph is gone
    synchronized boolean end() {
        ended = true;
        return graphUses.isEmpty();
    }

    /// Returns the bytes of its workspaces.
    synchronized long workspaceBytes() {
        return byteSize * (graphUses.size() + workspaces.size());
    }
}
