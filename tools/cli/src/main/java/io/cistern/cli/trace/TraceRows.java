package io.cistern.cli.trace;

import io.cistern.cli.trace.Recorder.Refused;
import io.cistern.cli.trace.Recording.Refusal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Builds a [Trace] row by row and rejects rows that contradict earlier ones.
///
/// A program may order streams by means that no row records, such as waiting on the host. To keep every replay
/// in order, this class inserts missing waits: before a use on a stream that no row made wait for the block's
/// earlier uses, and before a free on a stream that no row made wait for the allocation. A free needs no waits
/// for the uses, because these are recorded.
public final class TraceRows {
    /// The id of a refused request, which no block has.
    private static final long REFUSED = -1;

    /// The most streams that may use a block besides its own, because they increase the cost of reading a file.
    static final int MAX_USERS = 64;

    private static final int UNKNOWN = -1;
    private static final int FREED = -2;

    /// The slot of each id, or [#FREED]. No id is forgotten, so that a second free of one that was allocated shows.
    private final Map<Long, Integer> ids = new HashMap<>();

    private final TraceStreams streamNumbers = new TraceStreams();
    private byte[] ops = new byte[1 << 12];
    private int[] slots = new int[1 << 12];
    private long[] byteSizes = new long[1 << 12];
    private int[] streams = new int[1 << 12];
    private int[] threads = new int[1 << 12];
    private long[] nanos = new long[1 << 12];
    private int[] stacks = new int[1 << 12];
    private int[] waitingSince = new int[1 << 12];
    private int rows;
    private int operations;

    // By slot; the free slots are a stack.
    private long[] slotBytes = new long[1 << 8];
    private int[] slotStreams = new int[1 << 8];
    private int[] slotRows = new int[1 << 8];
    private int[] freeSlots = new int[1 << 8];
    private int freeSlotCount;
    private int slotCount;

    /// By slot, for the few blocks that other streams use too: each stream's row of the last use.
    private final Map<Integer, Map<Integer, Integer>> otherUses = new HashMap<>();

    private long liveBytes;
    private long peakBytes;

    // By device.
    private long[] deviceBytes = new long[1];
    private long[] devicePeakBytes = new long[1];
    private boolean mixed;

    private final Map<Long, Integer> threadNumbers = new HashMap<>();
    private final List<Refusal> refusals = new ArrayList<>();
    private int skippedRefusals;
    private long thread;
    private long time;
    private int stack;

    /// Sets the thread of the next rows; it is 0 without this call.
    public void thread(long number) {
        thread = number;
    }

    /// Sets the time and the call stack of the next rows, as numbers; they are 0 without this call.
    public void origin(long time, int stack) {
        this.time = time;
        this.stack = stack;
    }

    /// Adds a request that was refused: it is made again, and freed at once.
    ///
    /// @param then what was there then
    /// @throws IllegalArgumentException if the row is invalid; the message says why
    public void refused(long byteSize, long device, long stream, Refused then) {
        refusals.add(new Refusal(rows, byteSize, then));
        allocate(REFUSED, byteSize, device, stream);
        free(REFUSED);
    }

    /// Counts a request that was refused, and adds no row for it.
    void skipRefused() {
        skippedRefusals++;
    }

    /// Adds an allocation.
    ///
    /// @throws IllegalArgumentException if the row is invalid; the message says why
    public void allocate(long id, long byteSize, long device, long stream) {
        if (slot(id) >= 0) {
            throw new IllegalArgumentException("allocates id " + id + ", which is still live");
        }
        if (liveBytes > Long.MAX_VALUE - byteSize) {
            throw new IllegalArgumentException("more than 8 EiB live at once");
        }
        int slot = takeSlot();
        ids.put(id, slot);
        slotBytes[slot] = byteSize;
        slotStreams[slot] = streamNumbers.number(device, stream);
        slotRows[slot] = rows;
        liveBytes += byteSize;
        peakBytes = Math.max(peakBytes, liveBytes);
        addTo(streamNumbers.device(slotStreams[slot]), byteSize);
        add(Trace.ALLOCATE, slot, byteSize, slotStreams[slot]);
    }

    private void addTo(int device, long byteSize) {
        if (device >= deviceBytes.length) {
            deviceBytes = Arrays.copyOf(deviceBytes, 2 * device);
            devicePeakBytes = Arrays.copyOf(devicePeakBytes, 2 * device);
        }
        deviceBytes[device] += byteSize;
        devicePeakBytes[device] = Math.max(devicePeakBytes[device], deviceBytes[device]);
    }

    /// Adds a free on the block's own stream.
    ///
    /// @throws IllegalArgumentException if the row is invalid; the message says why
    void free(long id) {
        int slot = liveSlot(id);
        free(id, slot, slotStreams[slot]);
    }

    /// Adds a free on a stream.
    ///
    /// @throws IllegalArgumentException if the row is invalid; the message says why
    public void free(long id, long device, long stream) {
        free(id, liveSlot(id), streamNumbers.number(device, stream));
    }

    /// Notes that the program frees a live block that another stream still uses. The row of its free follows.
    public void freeRequested(long id) {
        waitingSince[slotRows[liveSlot(id)]] = rows;
    }

    private int slot(long id) {
        return ids.getOrDefault(id, UNKNOWN);
    }

    private int liveSlot(long id) {
        int slot = slot(id);
        if (slot < 0) {
            throw new IllegalArgumentException(
                    "frees id " + id + ", which " + (slot == FREED ? "was freed before" : "was never allocated"));
        }
        return slot;
    }

    private void free(long id, int slot, int stream) {
        awaitUnlessAfter(stream, slotStreams[slot], slotRows[slot]);
        otherUses.remove(slot);
        ids.put(id, FREED);
        liveBytes -= slotBytes[slot];
        addTo(streamNumbers.device(slotStreams[slot]), -slotBytes[slot]);
        noteDevice(slot, stream);
        if (freeSlotCount == freeSlots.length) {
            freeSlots = Arrays.copyOf(freeSlots, 2 * freeSlotCount);
        }
        freeSlots[freeSlotCount++] = slot;
        add(Trace.FREE, slot, 0, stream);
    }

    /// Adds a use of a block on a stream; does nothing if the block is not live.
    void use(long id, long device, long stream) {
        int slot = slot(id);
        if (slot >= 0) {
            int number = streamNumbers.number(device, stream);
            order(slot, number);
            noteDevice(slot, number);
            Map<Integer, Integer> uses = otherUses.computeIfAbsent(slot, _ -> new HashMap<>());
            uses.put(number, rows);
            if (uses.size() > MAX_USERS) {
                throw new IllegalArgumentException("more than " + MAX_USERS + " streams use id " + id);
            }
            add(Trace.USE, slot, 0, number);
        }
    }

    private void noteDevice(int slot, int stream) {
        mixed |= streamNumbers.device(slotStreams[slot]) != streamNumbers.device(stream);
    }

    void await(long device, long stream, long awaited) {
        await(streamNumbers.number(device, stream), streamNumbers.number(device, awaited));
    }

    void end(long device, long stream) {
        int number = streamNumbers.number(device, stream);
        streamNumbers.end(device, stream);
        add(Trace.END, 0, 0, number);
    }

    /// Adds a trim of a device; does nothing if the device has no stream yet.
    public void trim(long device) {
        int stream = streamNumbers.firstOn(device);
        if (stream != TraceStreams.NO_STREAM) {
            add(Trace.TRIM, 0, 0, stream);
        }
    }

    /// Makes a stream wait for a block's uses on other streams, unless earlier rows already did.
    private void order(int slot, int stream) {
        awaitUnlessAfter(stream, slotStreams[slot], slotRows[slot]);
        otherUses.getOrDefault(slot, Map.of()).forEach((other, row) -> awaitUnlessAfter(stream, other, row));
    }

    private void awaitUnlessAfter(int stream, int other, int row) {
        if (!streamNumbers.isAfter(stream, other, row)) {
            await(stream, other);
        }
    }

    private void await(int stream, int awaited) {
        streamNumbers.waited(stream, awaited, rows);
        add(Trace.WAIT, awaited, 0, stream);
    }

    /// Returns the trace of all rows, of which there must be at least one.
    Trace build(String name) {
        return new Trace(
                name,
                Arrays.copyOf(ops, rows),
                Arrays.copyOf(slots, rows),
                Arrays.copyOf(byteSizes, rows),
                Arrays.copyOf(streams, rows),
                slotCount,
                streamNumbers.count(),
                operations,
                peakBytes,
                skippedRefusals,
                new Trace.Origins(
                        Arrays.copyOf(threads, rows),
                        threadNumbers.size(),
                        streamNumbers.devices(),
                        Arrays.copyOf(devicePeakBytes, streamNumbers.deviceCount()),
                        mixed));
    }

    /// Returns the recording of all rows, of which there must be at least one.
    public Recording recording(String name, CallStacks callStacks, Recorder recorder) {
        return new Recording(
                build(name),
                Arrays.copyOf(nanos, rows),
                Arrays.copyOf(stacks, rows),
                Arrays.copyOf(waitingSince, rows),
                callStacks,
                refusals,
                streamNumbers.handles(),
                streamNumbers.ordinals(),
                recorder);
    }

    boolean isEmpty() {
        return operations == 0;
    }

    private int takeSlot() {
        if (freeSlotCount > 0) {
            return freeSlots[--freeSlotCount];
        }
        if (slotCount == slotBytes.length) {
            slotBytes = Arrays.copyOf(slotBytes, 2 * slotCount);
            slotStreams = Arrays.copyOf(slotStreams, 2 * slotCount);
            slotRows = Arrays.copyOf(slotRows, 2 * slotCount);
        }
        return slotCount++;
    }

    private void add(byte op, int slot, long byteSize, int stream) {
        if (rows == Trace.MAX_ROWS) {
            throw new IllegalArgumentException("more than " + Trace.MAX_ROWS + " rows");
        }
        if (rows == slots.length) {
            int length = Math.min(2 * rows, Trace.MAX_ROWS);
            ops = Arrays.copyOf(ops, length);
            slots = Arrays.copyOf(slots, length);
            byteSizes = Arrays.copyOf(byteSizes, length);
            streams = Arrays.copyOf(streams, length);
            threads = Arrays.copyOf(threads, length);
            nanos = Arrays.copyOf(nanos, length);
            stacks = Arrays.copyOf(stacks, length);
            waitingSince = Arrays.copyOf(waitingSince, length);
        }
        ops[rows] = op;
        slots[rows] = slot;
        byteSizes[rows] = byteSize;
        streams[rows] = stream;
        threads[rows] = threadNumbers.computeIfAbsent(thread, _ -> threadNumbers.size());
        nanos[rows] = time;
        stacks[rows] = stack;
        operations += Trace.isOperation(op) ? 1 : 0;
        rows++;
    }
}
