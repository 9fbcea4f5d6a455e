package io.cistern.cli.trace;

import java.util.Arrays;

/// A validated allocation trace, in the form that a replay walks through without garbage.
///
/// | `ops[i]` | `slots[i]` | `byteSizes[i]` | `streams[i]` |
/// |---|---|---|---|
/// | [#ALLOCATE] | the slot for the block | its bytes | the stream of its first use |
/// | [#FREE] | the block | 0 | the stream of its last use |
/// | [#USE] | the block | 0 | the other stream that uses it |
/// | [#WAIT] | the stream that is waited for | 0 | the stream that waits |
/// | [#END] | 0 | 0 | the stream that ends |
/// | [#TRIM] | 0 | 0 | any stream of the device |
///
/// The ids of the file are mapped to slots. A slot is reused after its free, so there are as many slots as
/// blocks were ever live at once. Streams are numbered from 0 in the order of their first row; the number of a
/// stream that ended is reused on the same device.
///
/// **Invariants.** As a replay walks the rows, an allocation finds its slot empty; a use or free finds it
/// taken. A use on a stream other than an earlier use's comes after a wait for that stream; a free on another
/// stream than the allocation's comes after a wait for that one.
///
/// @param name the file's name without folder and ending
/// @param ops one for each row
/// @param slots one for each row
/// @param byteSizes one for each row
/// @param streams one for each row
/// @param operations number of rows that allocate or free
/// @param requestedPeakBytes the most requested bytes live at once, on all devices together
/// @param skippedRefusals requests that were refused during recording and that no row makes again
/// @param origins the threads and devices of the rows
@SuppressWarnings("ArrayRecordComponent") // Nobody compares or prints traces; the loops want plain arrays.
public record Trace(
        String name,
        byte[] ops,
        int[] slots,
        long[] byteSizes,
        int[] streams,
        int slotCount,
        int streamCount,
        int operations,
        long requestedPeakBytes,
        int skippedRefusals,
        Origins origins) {
    public static final byte ALLOCATE = 0;
    public static final byte FREE = 1;
    public static final byte USE = 2;
    public static final byte WAIT = 3;
    public static final byte END = 4;
    public static final byte TRIM = 5;

    /// Far more rows than any shipped trace has; it bounds the memory that the arrays take.
    public static final int MAX_ROWS = 1 << 23;
    /// Each stream of the trace becomes a stream of the driver.
    public static final int MAX_STREAMS = 1024;
    /// Larger than any address space, yet sums of several such sizes still fit into a `long`.
    public static final long MAX_BLOCK_BYTES = 1L << 60;

    /// The threads and devices of a trace's rows. Both are numbered from 0 in the order of their first row.
    ///
    /// @param devicePeakBytes the most requested bytes live at once, by device
    /// @param mixed whether a block is used or freed on a device other than its own
    public record Origins(int[] threads, int threadCount, int[] devices, long[] devicePeakBytes, boolean mixed) {
        public int deviceCount() {
            return devicePeakBytes.length;
        }

        public long largestPeakBytes() {
            return Arrays.stream(devicePeakBytes).max().orElse(0);
        }

        public long sumOfPeakBytes() {
            return Arrays.stream(devicePeakBytes).sum();
        }
    }

    public Trace onOneThread() {
        return with(
                slots,
                slotCount,
                new Origins(new int[ops.length], 1, origins.devices, origins.devicePeakBytes, origins.mixed));
    }

    public Trace onOneDevice() {
        return with(
                slots,
                slotCount,
                new Origins(
                        origins.threads,
                        origins.threadCount,
                        new int[streamCount],
                        new long[] {requestedPeakBytes},
                        false));
    }

    /// Returns the same rows with a slot for each block, so that no block waits for another block's slot.
    public Trace withOwnSlots() {
        int[] present = new int[slotCount];
        int[] own = new int[slots.length];
        int count = 0;
        for (int row = 0; row < ops.length; row++) {
            if (ops[row] == ALLOCATE) {
                present[slots[row]] = count++;
            }
            own[row] = isOperation(ops[row]) || ops[row] == USE ? present[slots[row]] : slots[row];
        }
        return with(own, count, origins);
    }

    /// Returns some of the rows, all on one device and thread.
    ///
    /// @param rows their numbers, in order; with an allocation comes its free, if there is one
    /// @param peakBytes the most requested bytes live at once in them
    Trace ofRows(int[] rows, long peakBytes) {
        byte[] someOps = new byte[rows.length];
        int[] someSlots = new int[rows.length];
        long[] someSizes = new long[rows.length];
        int[] someStreams = new int[rows.length];
        int some = 0;
        for (int i = 0; i < rows.length; i++) {
            someOps[i] = ops[rows[i]];
            someSlots[i] = slots[rows[i]];
            someSizes[i] = byteSizes[rows[i]];
            someStreams[i] = streams[rows[i]];
            some += isOperation(someOps[i]) ? 1 : 0;
        }
        return new Trace(
                name,
                someOps,
                someSlots,
                someSizes,
                someStreams,
                slotCount,
                streamCount,
                some,
                peakBytes,
                skippedRefusals,
                new Origins(new int[rows.length], 1, new int[streamCount], new long[] {peakBytes}, false));
    }

    private Trace with(int[] otherSlots, int otherSlotCount, Origins otherOrigins) {
        return new Trace(
                name,
                ops,
                otherSlots,
                byteSizes,
                streams,
                otherSlotCount,
                streamCount,
                operations,
                requestedPeakBytes,
                skippedRefusals,
                otherOrigins);
    }

    /// Returns the rows that allocated the blocks that are live before a row.
    public int[] liveBefore(int end) {
        int[] madeBy = new int[slotCount];
        Arrays.fill(madeBy, -1);
        for (int row = 0; row < end; row++) {
            if (isOperation(ops[row])) {
                madeBy[slots[row]] = ops[row] == ALLOCATE ? row : -1;
            }
        }
        return Arrays.stream(madeBy).filter(row -> row >= 0).toArray();
    }

    public static boolean isOperation(byte op) {
        return op <= FREE;
    }
}
