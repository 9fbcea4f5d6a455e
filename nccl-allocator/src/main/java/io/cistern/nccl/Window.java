package io.cistern.nccl;

import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.internal.call.BlockingWork;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.nccl.internal.symmetric.SymmetricAllocator;
import io.cistern.nccl.internal.symmetric.SymmetricAllocator.WindowPlace;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.List;

/// The memory of one pool, registered as a symmetric window: equal allocations have the same offsets in it on
/// all ranks. Ranks access each other's memory by offset, and NCCL uses its symmetric kernels for buffers in
/// the window.
///
/// **Order of closing.** Pool, communicator and window may be closed in any order: the memory is kept
/// until the last window on it is closed.
///
/// **Threads.** Any thread may call any method at any time.
public final class Window implements AutoCloseable {
    /// The first version of NCCL with windows.
    static final int SINCE = 22703;

    private final Communicator communicator;
    private final SegmentRegistry registry;
    private final WindowPlace place;
    private final Segment segment;
    private final long handle;

    private Window(Communicator communicator, SegmentRegistry registry, WindowPlace place, long handle) {
        this.communicator = communicator;
        this.registry = registry;
        this.place = place;
        this.segment = place.segment();
        this.handle = handle;
    }

    /// Registers a pool's memory with ranks of this process, all in one group.
    static List<Window> open(NcclApi api, List<Communicator> communicators, MemoryPool pool) {
        SymmetricAllocator memory = pool.extension(SymmetricAllocator.class)
                .orElseThrow(() -> new ConfigurationException(pool + " can't be a window: its offsets depend on timing,"
                        + " so they would differ between ranks; valid: a pool of the allocator symmetric"));
        if (api.version() < SINCE) {
            throw new UnsupportedOperationException("windows came with NCCL " + NcclLibrary.text(SINCE) + "; this is "
                    + NcclLibrary.text(api.version()));
        }
        return BlockingWork.get(() -> open(api, communicators, memory));
    }

    private static List<Window> open(NcclApi api, List<Communicator> communicators, SymmetricAllocator memory) {
        WindowPlace[] places = new WindowPlace[communicators.size()];
        int placed = 0;
        try {
            while (placed < places.length) {
                places[placed] = memory.placeWindow(communicators.get(placed).device());
                placed++;
            }
            return open(api, communicators, memory.registry(), List.of(places));
        } catch (RuntimeException | Error failure) {
            for (int i = 0; i < placed; i++) {
                places[i].windows().decrementAndGet();
            }
            memory.registry().windowClosed();
            throw failure;
        }
    }

    private static List<Window> open(
            NcclApi api, List<Communicator> communicators, SegmentRegistry registry, List<WindowPlace> places) {
        return Nccl.locked(communicators, () -> {
            long[] handles = api.registerWindows(
                    communicators.stream().map(Communicator::handle).toArray(NcclApi.Handle[]::new),
                    places.stream()
                            .mapToLong(place -> place.segment().address())
                            .toArray(),
                    places.getFirst().segment().byteSize());
            return opened(api, communicators, registry, places, handles);
        });
    }

    private static List<Window> opened(
            NcclApi api,
            List<Communicator> communicators,
            SegmentRegistry registry,
            List<WindowPlace> places,
            long... handles) {
        for (long handle : handles) {
            if (handle == 0) {
                undo(api, communicators, handles);
                throw new UnsupportedOperationException("NCCL has no symmetric memory for these ranks: it needs"
                        + " physical handles (NCCL_CUMEM_ENABLE), peer access between all ranks of a host, and"
                        + " NCCL_WIN_ENABLE not 0");
            }
        }
        List<Window> windows = List.of();
        try {
            windows = new ArrayList<>(handles.length);
            for (int i = 0; i < handles.length; i++) {
                Window window = new Window(communicators.get(i), registry, places.get(i), handles[i]);
                windows.add(window);
                communicators.get(i).opened(window);
            }
            return windows;
        } catch (RuntimeException | Error failure) {
            for (int i = 0; i < windows.size(); i++) {
                communicators.get(i).forget(windows.get(i));
            }
            undo(api, communicators, handles);
            throw failure;
        }
    }

    private static void undo(NcclApi api, List<Communicator> communicators, long... handles) {
        for (int i = 0; i < handles.length; i++) {
            if (handles[i] != 0) {
                api.deregisterWindow(communicators.get(i).handle(), handles[i]);
            }
        }
    }

    /// Returns the window's length in bytes, which is the same on all ranks.
    public long byteSize() {
        return segment.byteSize();
    }

    /// Returns the `ncclWindow_t`, for other libraries.
    public long handle() {
        return handle;
    }

    /// Returns whether a buffer lies in the window.
    public boolean contains(DeviceBuffer buffer) {
        long address = buffer.address();
        return buffer.device() == segment.device()
                && address >= segment.address()
                && address + buffer.byteSize() <= segment.address() + segment.byteSize();
    }

    /// Returns the offset of a buffer from the window's beginning, in bytes. It is the same on all ranks that
    /// made the same allocations in the same order.
    ///
    /// @throws IllegalArgumentException if the buffer does not lie in the window
    public long offsetOf(DeviceBuffer buffer) {
        if (!contains(buffer)) {
            throw new IllegalArgumentException(buffer + " is not inside this window");
        }
        return buffer.address() - segment.address();
    }

    /// Deregisters the window. Every rank must do so, once its work on the window has completed. Closing
    /// twice does nothing.
    @Override
    public void close() {
        communicator.end(this);
    }

    /// Ends it. The caller holds the communicator's lock.
    ///
    /// @param alive whether the communicator still has a handle
    void end(boolean alive) {
        try {
            if (alive) {
                communicator.api().deregisterWindow(communicator.handle(), handle);
            }
        } finally {
            place.windows().decrementAndGet();
            registry.windowClosed();
        }
    }
}
