package io.cistern.cli.trace;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Numbers the streams of a trace and their devices, and remembers which stream waited for which.
final class TraceStreams {
    static final int NO_STREAM = -1;

    private final Map<Handle, Integer> numbers = new HashMap<>();
    private final Map<Long, Integer> deviceNumbers = new HashMap<>();
    /// By device.
    private final List<Deque<Integer>> ended = new ArrayList<>();
    /// By device.
    private final List<Integer> firsts = new ArrayList<>();
    /// By stream.
    private final List<Integer> devices = new ArrayList<>();
    /// By stream, the handle that it had first.
    private final List<Long> handles = new ArrayList<>();
    private final Map<Long, Integer> waits = new HashMap<>();

    private record Handle(long device, long stream) {}

    /// Returns the number of a stream.
    ///
    /// @throws IllegalArgumentException if there are more than [Trace#MAX_STREAMS]
    int number(long device, long stream) {
        Handle handle = new Handle(device, stream);
        Integer known = numbers.get(handle);
        if (known == null) {
            known = next(deviceNumbers.computeIfAbsent(device, _ -> deviceNumbers.size()), stream);
            numbers.put(handle, known);
        }
        return known;
    }

    private int next(int device, long handle) {
        if (device == ended.size()) {
            ended.add(new ArrayDeque<>());
            firsts.add(devices.size());
        }
        if (!ended.get(device).isEmpty()) {
            return ended.get(device).pop();
        }
        if (devices.size() == Trace.MAX_STREAMS) {
            throw new IllegalArgumentException("more than " + Trace.MAX_STREAMS + " streams");
        }
        devices.add(device);
        handles.add(handle);
        return devices.size() - 1;
    }

    /// Returns the number of a device's first stream, or [#NO_STREAM].
    int firstOn(long device) {
        Integer number = deviceNumbers.get(device);
        return number == null ? NO_STREAM : firsts.get(number);
    }

    int device(int stream) {
        return devices.get(stream);
    }

    /// Forgets the number of a handle, which may come back for another stream.
    void end(long device, long stream) {
        Integer number = numbers.remove(new Handle(device, stream));
        if (number != null) {
            ended.get(device(number)).push(number);
        }
    }

    void waited(int stream, int awaited, int row) {
        waits.put(pair(stream, awaited), row);
    }

    /// Returns whether a stream waited for another one after a row.
    boolean isAfter(int stream, int other, int row) {
        return stream == other || waits.getOrDefault(pair(stream, other), -1) > row;
    }

    private static long pair(int stream, int awaited) {
        return (long) stream << Integer.SIZE | awaited;
    }

    int count() {
        return devices.size();
    }

    int deviceCount() {
        return ended.size();
    }

    /// Returns the handle of each stream; the first of them if its number was used again.
    long[] handles() {
        return handles.stream().mapToLong(Long::longValue).toArray();
    }

    long[] ordinals() {
        long[] ordinals = new long[deviceNumbers.size()];
        deviceNumbers.forEach((ordinal, number) -> ordinals[number] = ordinal);
        return ordinals;
    }

    int[] devices() {
        return devices.stream().mapToInt(Integer::intValue).toArray();
    }
}
