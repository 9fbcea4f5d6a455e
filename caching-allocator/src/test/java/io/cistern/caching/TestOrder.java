package io.cistern.caching;

import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Streams whose work goes on until the test says otherwise.
final class TestOrder implements StreamOrder {
    final Set<Long> busy = new HashSet<>();
    final List<Long> recordedOn = new ArrayList<>();
    /// Which stream was waited for by which.
    final List<String> waits = new ArrayList<>();
    private final Map<Long, Long> streamOfFence = new HashMap<>();
    private long lastFence;

    @Override
    public synchronized long record(int device, long stream) {
        recordedOn.add(stream);
        streamOfFence.put(++lastFence, stream);
        return lastFence;
    }

    @Override
    public synchronized boolean passed(int device, long fence) {
        return !busy.contains(streamOf(fence));
    }

    @Override
    public void await(int device, long stream, long fence) {
        synchronized (this) {
            waits.add(streamOf(fence) + "→" + stream);
        }
    }

    @Override
    public synchronized void synchronize(int device, long fence) {
        busy.remove(streamOf(fence));
    }

    @Override
    public synchronized void release(int device, long fence) {
        streamOf(fence);
        streamOfFence.remove(fence);
    }

    synchronized int openFences() {
        return streamOfFence.size();
    }

    private long streamOf(long fence) {
        Long stream = streamOfFence.get(fence);
        if (stream == null) {
            throw new AssertionError("fence " + fence + " was released or never recorded");
        }
        return stream;
    }
}
