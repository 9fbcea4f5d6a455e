package io.cistern.onnxruntime;

import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.cuda.library.NativeCode;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Answers ONNX Runtime's calls. It finds the session of a block, and lets no exception reach C.
///
/// A block belongs to the session on whose stream it is used. If no session has that stream, the block belongs
/// to the session whose [SessionMemory#call] the thread runs, else to none.
///
/// **Threads.** Any.
final class SessionCalls {
    private static final System.Logger LOG = System.getLogger(SessionCalls.class.getName());
    private static final long FAILED = 0;
    private static final long DONE = 0;
    /// ONNX Runtime's answer for the handle of a host stream.
    private static final long HOST_STREAM = 0;

    private final OnnxApi api;
    private final DeviceMemory memory;
    private final int device;
    private final SessionBlocks blocks;
    private final IdleStreams idleStreams;
    private final StreamOrder order;
    private final BlockOrder anyStream;
    private final CudaStreamPool standIns;
    /// The order of a block, by the handle of its stream.
    private final Map<Long, BlockOrder> orders = new ConcurrentHashMap<>();
    /// The sessions, by the handle of their stream. A closed session stays until its last block is freed.
    private final Map<Long, SessionMemory> byStream = new ConcurrentHashMap<>();

    private final Set<SessionMemory> closing = ConcurrentHashMap.newKeySet();
    private final AtomicReference<@Nullable Throwable> lastFailure = new AtomicReference<>();
    private final Set<Class<?>> told = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    SessionCalls(OnnxApi api, DeviceMemory memory, int device, IdleStreams idleStreams) {
        this.api = api;
        this.memory = memory;
        this.device = device;
        this.idleStreams = idleStreams;
        order = memory.moduleSupport().streams();
        blocks = new SessionBlocks(memory, device, this::blockFreed);
        standIns = idleStreams.standIns(device);
        anyStream = new BlockOrder.AnyStream(idleStreams.take(device), order);
    }

    void add(SessionMemory session) {
        session.stream().ifPresent(stream -> {
            orders.put(stream.handle(), new BlockOrder.OwnStream(stream));
            byStream.put(stream.handle(), session);
        });
    }

    /// Ends a session. Its stream is given back when its last block is freed.
    void close(SessionMemory session) {
        closing.add(session);
        giveStreamBack(session);
    }

    private void giveStreamBack(SessionMemory session) {
        if (session.figures().liveBlocks() == 0 && closing.remove(session)) {
            session.stream().ifPresent(stream -> {
                byStream.remove(stream.handle(), session);
                idleStreams.give(stream);
            });
        }
    }

    private void blockFreed(SessionMemory session) {
        if (!closing.isEmpty()) {
            giveStreamBack(session);
        }
    }

    /// Refuses all later allocations.
    void close() {
        closed = true;
        blocks.processPendingFrees();
        idleStreams.give(anyStream.stream());
    }

    SessionFigures figures() {
        return blocks.all().figures();
    }

    Optional<Throwable> lastFailure() {
        return Optional.ofNullable(lastFailure.get());
    }

    /// Returns the address of a block for work on an unnamed stream; 0 if it fails.
    long allocate(long byteSize) {
        return allocated(byteSize, anyStream, regionOfThread());
    }

    /// Returns the address of a block for work on a stream; 0 if it fails.
    ///
    /// @param syncStream an `OrtSyncStream`
    long allocateOnStream(long byteSize, long syncStream) {
        try {
            long handle = syncStream == 0 ? HOST_STREAM : api.streamHandle(MemorySegment.ofAddress(syncStream));
            if (handle == HOST_STREAM) {
                return allocate(byteSize);
            }
            SessionMemory session = byStream.get(handle);
            return allocated(byteSize, orderOf(handle), session == null ? regionOfThread() : session);
        } catch (Throwable failure) {
            return refused(failure, null);
        }
    }

    private BlockOrder orderOf(long handle) {
        BlockOrder known = orders.get(handle);
        return known != null
                ? known
                : orders.computeIfAbsent(handle, made -> new BlockOrder.StandIn(standIns.next(), order, made));
    }

    private static @Nullable SessionMemory regionOfThread() {
        return SessionMemory.CURRENT.isBound() ? SessionMemory.CURRENT.get() : null;
    }

    private long allocated(long byteSize, BlockOrder order, @Nullable SessionMemory session) {
        try {
            requireOpen(byteSize);
            if (byteSize == 0) {
                return FAILED;
            }
            long address = blocks.allocate(byteSize, order, session);
            if (closed) { // meanwhile; a later OnnxMemory would not know the block
                blocks.free(address);
                requireOpen(byteSize);
            }
            return address;
        } catch (Throwable failure) {
            return refused(failure, session);
        }
    }

    private void requireOpen(long byteSize) {
        if (closed) {
            throw new IllegalStateException("a session of ONNX Runtime allocates " + byteSize
                    + " bytes after its OnnxMemory was closed; close the session first");
        }
    }

    private long refused(Throwable failure, @Nullable SessionMemory session) {
        blocks.all().refused();
        if (session != null) {
            session.counters().refused();
        }
        tell(failure);
        return FAILED;
    }

    /// Frees a block; 0 does nothing.
    void free(long address) {
        try {
            if (address != 0) {
                blocks.free(address);
            }
        } catch (Throwable failure) {
            tell(failure);
        }
    }

    /// Returns whether a live block begins at an address.
    boolean has(long address) {
        return blocks.has(address);
    }

    /// Returns whether any block is live.
    boolean hasAny() {
        return blocks.hasAny();
    }

    /// Stores the allocator's figures.
    ///
    /// @param out where to write the address of an `OrtKeyValuePairs`
    /// @return an `OrtStatus`; 0 for success
    long statistics(long out) {
        try {
            MemorySegment pairs = api.keyValuePairs(named(figures()));
            NativeCode.memory(out, ValueLayout.ADDRESS.byteSize()).set(ValueLayout.ADDRESS, 0, pairs);
            return DONE;
        } catch (Throwable failure) {
            return status(failure);
        }
    }

    /// Returns the figures under the names that ONNX Runtime's own allocators use.
    private Map<String, Long> named(SessionFigures figures) {
        Map<String, Long> named = new LinkedHashMap<>();
        MemoryLimit limit = memory.limits().device(device);
        named.put("Limit", limit.isSet() ? limit.byteSize() : -1L);
        named.put("InUse", figures.usedBytes());
        named.put("MaxInUse", figures.peakBytes());
        named.put("TotalAllocated", memory.statistics(device).reservedBytes().orElse(figures.usedBytes()));
        named.put("NumAllocs", figures.allocations());
        return named;
    }

    /// Gives idle memory back to the driver.
    ///
    /// @return an `OrtStatus`; 0 for success
    long shrink() {
        try {
            memory.trim(device, 0, TrimMode.WITHOUT_WAITING);
            return DONE;
        } catch (Throwable failure) {
            return status(failure);
        }
    }

    /// Reports a failure and returns it as an `OrtStatus`, or returns success if no status can be made.
    private long status(Throwable failure) {
        tell(failure);
        try {
            return api.failure(failure.toString()).address();
        } catch (Throwable _) {
            return DONE;
        }
    }

    private void tell(Throwable failure) {
        try {
            lastFailure.set(failure);
            if (told.add(failure.getClass())) {
                LOG.log(
                        Level.WARNING,
                        "a call from ONNX Runtime failed; later failures of this kind are not logged: {0}",
                        failure.toString());
            }
        } catch (Throwable _) {
            // The logger threw or no stack is left, so nobody can be told.
        }
    }
}
