package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.StreamEngine;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// The streams of a machine, and the order between a device's legacy default stream and its blocking streams:
/// work of either follows all earlier work of the other. Guarded by the machine's lock.
final class StreamTable {
    private final StreamEngine engine;
    private final HandleTable handles;
    private final HazardTracker hazards;
    /// The legacy default streams, by device.
    private final List<StreamQueue> legacy = new ArrayList<>();
    /// All live streams, and destroyed ones whose work the host has not waited for.
    private final Set<StreamQueue> all = new LinkedHashSet<>();

    /// By device, the queue that marks the end of all its streams. No program has its handle.
    private final Map<Integer, StreamQueue> ends = new HashMap<>();

    private final Map<Thread, Map<Integer, StreamQueue>> perThread = new WeakHashMap<>();
    /// Handles of streams that are gone. The next stream gets the latest of them, as with the driver: a
    /// stale handle may refer to another stream.
    private final Deque<Long> freeHandles = new ArrayDeque<>();

    private long lastId = 6;

    StreamTable(StreamEngine engine, HandleTable handles, HazardTracker hazards) {
        this.engine = engine;
        this.handles = handles;
        this.hazards = hazards;
    }

    /// Adds the legacy default stream of the next device.
    StreamQueue addLegacy() {
        StreamQueue stream = add(legacy.size(), true);
        legacy.add(stream);
        return stream;
    }

    private StreamQueue add(int device, boolean blocking) {
        StreamQueue stream = new StreamQueue(++lastId, device, blocking);
        all.add(stream);
        return stream;
    }

    /// Returns a new queue without a handle.
    StreamQueue unnamed(int device) {
        return new StreamQueue(++lastId, device, false);
    }

    long create(int device, boolean blocking) {
        Long again = freeHandles.poll();
        long handle = again != null ? again : handles.next();
        handles.put(handle, add(device, blocking));
        return handle;
    }

    void destroy(StreamQueue stream, long handle) {
        handles.forget(handle);
        freeHandles.push(handle);
        stream.destroy();
    }

    StreamQueue find(DriverCall call, int device, long handle) {
        if (handle == 0 || handle == Streams.LEGACY_DEFAULT) {
            return legacy.get(device);
        }
        if (handle == Streams.PER_THREAD_DEFAULT) {
            return perThread
                    .computeIfAbsent(Thread.currentThread(), _ -> new HashMap<>())
                    .computeIfAbsent(device, _ -> add(device, true));
        }
        StreamQueue stream = handles.find(StreamQueue.class, handle, CudaResult.INVALID_HANDLE, call, device);
        if (stream.device() != device) {
            String description = "stream 0x" + Long.toHexString(handle) + " belongs to device " + stream.device();
            hazards.report(Misuse.Kind.FOREIGN_HANDLE, call, device, 0, description);
            throw new DriverFailure(CudaResult.INVALID_HANDLE);
        }
        return stream;
    }

    /// Returns a stream whose last work follows all work issued so far to any stream of the device.
    StreamQueue followAll(int device) {
        StreamQueue end = ends.computeIfAbsent(device, this::unnamed);
        List<Work> waits = new ArrayList<>();
        for (StreamQueue stream : all) {
            if (stream.device() == device) {
                follow(end, stream, waits);
            }
        }
        engine.add(end, Work.waitingFor(waits));
        return end;
    }

    /// Passes each stream of a device to an action after the host has waited for all their work, and drops the
    /// destroyed ones.
    ///
    /// @return the ids of the dropped streams
    Set<Long> finished(int device, Consumer<StreamQueue> action) {
        for (StreamQueue stream : all) {
            if (stream.device() == device) {
                action.accept(stream);
            }
        }
        List<StreamQueue> gone = all.stream()
                .filter(stream -> stream.device() == device && stream.gone())
                .toList();
        if (gone.isEmpty()) {
            return Set.of();
        }
        gone.forEach(all::remove);
        gone.forEach(StreamQueue::forget);
        Set<Long> ids = gone.stream().map(StreamQueue::id).collect(Collectors.toSet());
        all.forEach(stream -> stream.clock().forget(ids));
        ends.values().forEach(stream -> stream.clock().forget(ids));
        return ids;
    }

    /// Returns whether a stream is idle; the legacy default stream is idle only when all blocking streams are.
    boolean idle(StreamQueue stream) {
        return group(stream).stream().allMatch(StreamQueue::idle);
    }

    /// Returns the stream alone; for the legacy default stream, also the active streams that it waits for.
    List<StreamQueue> group(StreamQueue stream) {
        if (legacy.get(stream.device()) != stream) {
            return List.of(stream);
        }
        List<StreamQueue> group = new ArrayList<>(List.of(stream));
        engine.active().stream()
                .filter(other -> other != stream && other.blocking() && other.device() == stream.device())
                .forEach(group::add);
        return group;
    }

    /// Adds work to a stream, in order with the legacy default stream if the stream is blocking.
    void enqueue(StreamQueue stream, Work work) {
        order(stream);
        engine.add(stream, work);
    }

    /// Orders a stream's next work with the legacy default stream, before the work's order is checked.
    void order(StreamQueue stream) {
        if (!stream.blocking()) {
            return;
        }
        StreamQueue first = legacy.get(stream.device());
        List<Work> waits = new ArrayList<>();
        if (stream != first) {
            follow(stream, first, waits);
        } else {
            for (StreamQueue other : List.copyOf(engine.active())) {
                if (other != stream && other.blocking() && other.device() == stream.device()) {
                    follow(stream, other, waits);
                }
            }
        }
        if (!waits.isEmpty()) {
            engine.add(stream, Work.waitingFor(waits));
        }
    }

    private static void follow(StreamQueue stream, StreamQueue before, List<Work> waits) {
        if (!stream.clock().covers(before, before.issued())) {
            Work last = before.tail();
            if (last != null) {
                waits.add(last);
            }
            stream.clock().include(before.clock());
            stream.clock().include(before, before.issued());
        }
    }
}
