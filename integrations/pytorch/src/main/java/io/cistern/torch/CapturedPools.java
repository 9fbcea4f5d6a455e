package io.cistern.torch;

import io.cistern.DeviceMemory;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// Keeps the memory of PyTorch's CUDA graphs. PyTorch names that memory by the id of a pool, which several
/// graphs may share. It reports when a capture on a stream begins and ends, and when one of the graphs is gone.
///
/// **Threads.** Any.
final class CapturedPools {
    private final DeviceMemory memory;
    private final Map<Key, Pool> pools = new HashMap<>();

    CapturedPools(DeviceMemory memory) {
        this.memory = memory;
    }

    private record Key(int device, String id) {}

    /// @param graphs one hold for each graph that was captured into the pool and is not gone
    private record Pool(GraphMemory memory, Deque<GraphMemory.Hold> graphs, Deque<Long> capturing) {}

    /// Runs `capture_begins DEVICE POOL STREAM`, `capture_ends DEVICE POOL` or `pool_released DEVICE POOL`.
    synchronized String run(String what, String[] words) {
        Key key = new Key(Integer.parseInt(words[0]), words[1]);
        switch (what) {
            case "capture_begins" -> begin(key, Long.parseUnsignedLong(words[2]));
            case "capture_ends" -> end(key);
            default -> release(key);
        }
        return "";
    }

    private void begin(Key key, long stream) {
        endFailed(key.device(), stream);
        Pool pool = pools.computeIfAbsent(
                key, _ -> new Pool(GraphMemory.of(memory), new ArrayDeque<>(), new ArrayDeque<>()));
        GraphCapture.announce(memory, key.device(), stream, pool.memory());
        pool.capturing().push(stream);
    }

    /// Ends a failed capture on the stream. PyTorch does not report a failure; the next capture reveals it.
    private void endFailed(int device, long stream) {
        for (Map.Entry<Key, Pool> each : pools.entrySet()) {
            if (each.getKey().device() == device && each.getValue().capturing().remove(stream)) {
                GraphCapture.announceEnd(memory, device, stream, 0);
                break;
            }
        }
        pools.values()
                .removeIf(pool -> pool.capturing().isEmpty() && pool.graphs().isEmpty());
    }

    private void end(Key key) {
        Pool pool = Objects.requireNonNull(pools.get(key), "no capture into this pool has begun");
        long stream = pool.capturing().pop();
        GraphMemory.Hold hold = pool.memory().hold();
        try {
            GraphCapture.announceEnd(memory, key.device(), stream, 0);
        } catch (Throwable failure) {
            hold.close();
            throw failure;
        }
        pool.graphs().push(hold);
    }

    private void release(Key key) {
        Pool pool = pools.get(key);
        if (pool == null || pool.graphs().isEmpty()) {
            return;
        }
        pool.graphs().pop().close();
        if (pool.graphs().isEmpty() && pool.capturing().isEmpty()) {
            pools.remove(key);
        }
        GraphMemory.collect(memory);
    }
}
