package io.cistern.cli;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// Puts a [Trace] together row by row and refuses rows that contradict earlier ones.
final class TraceBuilder {
    /// Twenty-five times the longest trace shipped; its arrays take some 400 MiB at the worst.
    static final int MAX_ROWS = 1 << 23;
    /// Each becomes a stream of the driver.
    static final int MAX_STREAMS = 1024;

    private final LiveIds ids = new LiveIds();
    private final Map<Long, Integer> streamNumbers = new HashMap<>();
    private int[] slots = new int[1 << 12];
    private long[] byteSizes = new long[1 << 12];
    private int[] streams = new int[1 << 12];
    private int rows;

    // By slot; the free slots are a stack.
    private long[] slotBytes = new long[1 << 8];
    private int[] slotStreams = new int[1 << 8];
    private int[] freeSlots = new int[1 << 8];
    private int freeSlotCount;
    private int slotCount;

    private long liveBytes;
    private long peakBytes;

    /// Adds an allocation.
    ///
    /// @throws IllegalArgumentException saying what is wrong with it
    void allocate(long id, long byteSize, long stream) {
        if (ids.get(id) >= 0) {
            throw new IllegalArgumentException("allocates id " + id + ", which is still live");
        }
        if (liveBytes > Long.MAX_VALUE - byteSize) {
            throw new IllegalArgumentException("more than 8 EiB live at once");
        }
        int slot = takeSlot();
        ids.put(id, slot);
        slotBytes[slot] = byteSize;
        slotStreams[slot] = streamNumber(stream);
        liveBytes += byteSize;
        peakBytes = Math.max(peakBytes, liveBytes);
        add(slot, byteSize, slotStreams[slot]);
    }

    /// Adds a free.
    ///
    /// @throws IllegalArgumentException saying what is wrong with it
    void free(long id) {
        int slot = ids.get(id);
        if (slot < 0) {
            throw new IllegalArgumentException("frees id " + id + ", which "
                    + (slot == LiveIds.FREED ? "was freed before" : "was never allocated"));
        }
        ids.put(id, LiveIds.FREED);
        liveBytes -= slotBytes[slot];
        if (freeSlotCount == freeSlots.length) {
            freeSlots = Arrays.copyOf(freeSlots, 2 * freeSlotCount);
        }
        freeSlots[freeSlotCount++] = slot;
        add(~slot, 0, slotStreams[slot]);
    }

    /// The trace of all rows added, of which there is at least one.
    Trace build(String name) {
        return new Trace(
                name,
                Arrays.copyOf(slots, rows),
                Arrays.copyOf(byteSizes, rows),
                Arrays.copyOf(streams, rows),
                slotCount,
                streamNumbers.size(),
                peakBytes);
    }

    boolean isEmpty() {
        return rows == 0;
    }

    private int takeSlot() {
        if (freeSlotCount > 0) {
            return freeSlots[--freeSlotCount];
        }
        if (slotCount == slotBytes.length) {
            slotBytes = Arrays.copyOf(slotBytes, 2 * slotCount);
            slotStreams = Arrays.copyOf(slotStreams, 2 * slotCount);
        }
        return slotCount++;
    }

    private int streamNumber(long stream) {
        Integer known = streamNumbers.get(stream);
        if (known != null) {
            return known;
        }
        if (streamNumbers.size() == MAX_STREAMS) {
            throw new IllegalArgumentException("more than " + MAX_STREAMS + " streams");
        }
        streamNumbers.put(stream, streamNumbers.size());
        return streamNumbers.size() - 1;
    }

    private void add(int slot, long byteSize, int stream) {
        if (rows == MAX_ROWS) {
            throw new IllegalArgumentException("more than " + MAX_ROWS + " rows");
        }
        if (rows == slots.length) {
            int length = Math.min(2 * rows, MAX_ROWS);
            slots = Arrays.copyOf(slots, length);
            byteSizes = Arrays.copyOf(byteSizes, length);
            streams = Arrays.copyOf(streams, length);
        }
        slots[rows] = slot;
        byteSizes[rows] = byteSize;
        streams[rows] = stream;
        rows++;
    }
}
