package io.cistern.caching;

import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;

/// Streams whose work goes on until the test says otherwise.
public final class TestOrder implements StreamOrder {
    /// Stands for all streams in [#recordedOn].
    public static final long ALL = -1;

    public final Set<Long> busy = new HashSet<>();
    public final List<Long> recordedOn = new ArrayList<>();
    /// Which stream was waited for by which.
    public final List<String> waits = new ArrayList<>();
    /// Told of streams before something is recorded on them, and before such a fence is released.
    public LongConsumer recording = _ -> {};

    LongConsumer releasing = _ -> {};
    /// The streams of which the driver can tell whether their work has finished, and how often it was asked.
    public final Set<Long> independent = new HashSet<>();

    public int questions;
    /// The streams that are captured: nothing is recorded there, and no other stream waits for what was.
    public final Set<Long> captured = new HashSet<>();

    /// Told of streams when it is asked whether something can be recorded on them.
    public LongConsumer asking = _ -> {};

    /// Called when the host begins to wait for a fence.
    public Runnable waiting = () -> {};

    private final Map<Long, Long> streamOfFence = new HashMap<>();
    private long lastFence;

    @Override
    public long record(int device, long stream) {
        recording.accept(stream);
        synchronized (this) {
            recordedOn.add(stream);
            streamOfFence.put(++lastFence, stream);
            return lastFence;
        }
    }

    @Override
    public boolean recordable(int device, long stream) {
        asking.accept(stream);
        return !captured.contains(stream);
    }

    @Override
    public boolean independent(int device, long stream) {
        return independent.contains(stream);
    }

    @Override
    public synchronized boolean finished(int device, long stream) {
        questions++;
        return !busy.contains(stream);
    }

    @Override
    public boolean awaitable(int device, long fence) {
        return !captured.contains(streamOf(fence));
    }

    @Override
    public long recordAll(int device) {
        return record(device, ALL);
    }

    @Override
    public synchronized boolean passed(int device, long fence) {
        questions++;
        return streamOf(fence) == ALL ? busy.isEmpty() : !busy.contains(streamOf(fence));
    }

    @Override
    public void await(int device, long stream, long fence) {
        synchronized (this) {
            waits.add(streamOf(fence) + "→" + stream);
        }
    }

    @Override
    public void synchronize(int device, long fence) {
        waiting.run();
        synchronized (this) {
            if (streamOf(fence) == ALL) {
                busy.clear();
            }
            busy.remove(streamOf(fence));
        }
    }

    @Override
    public void release(int device, long fence) {
        releasing.accept(streamOf(fence));
        synchronized (this) {
            streamOfFence.remove(fence);
        }
    }

    public synchronized int openFences() {
        return streamOfFence.size();
    }

    private synchronized long streamOf(long fence) {
        Long stream = streamOfFence.get(fence);
        if (stream == null) {
            throw new AssertionError("fence " + fence + " was released or never recorded");
        }
        return stream;
    }
}
