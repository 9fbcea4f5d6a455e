package io.cistern.cli.trace;

import java.util.Arrays;

/// An allocation trace, checked, in the form that a replay walks through without garbage.
///
/// | `ops[i]` | `slots[i]` | `byteSizes[i]` | `streams[i]` |
/// |---|---|---|---|
/// | [#ALLOCATE] | where to remember the block | its bytes | the stream of its first use |
/// | [#FREE] | the block | 0 | the stream of its last use |
/// | [#USE] | the block | 0 | the other stream that uses it |
/// | [#WAIT] | the stream that is waited for | 0 | the stream that waits |
/// | [#END] | 0 | 0 | the stream that ends |
///
/// Ids of the file have become slots: a slot is used again after its free, so there are as many as blocks were
/// ever live at once. Streams are numbered from 0 in the order of their first row; the number of one that ended
/// is used again, on the same device.
///
/// **Invariants.** Walking the rows, an allocation finds its slot empty, a use and a free find it taken. A
/// use on another stream than that of an earlier use comes after a wait for it, a free on another than the
/// allocation's after a wait for that.
///
/// @param name what people call it: the file's name without folder and ending
/// @param ops one a row
/// @param slots one a row
/// @param byteSizes one a row
/// @param streams one a row
/// @param slotCount how many slots there are
/// @param streamCount how many streams there are
/// @param operations how many rows allocate or free
/// @param requestedPeakBytes the most bytes asked for at once, on all devices
/// @param origins which threads and devices the rows are of
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
        Origins origins) {
    public static final byte ALLOCATE = 0;
    public static final byte FREE = 1;
    public static final byte USE = 2;
    public static final byte WAIT = 3;
    public static final byte END = 4;

    /// Which threads and devices the rows of a trace are of. Both are numbered from 0 in the order of their
    /// first row.
    ///
    /// @param threads the thread of each row
    /// @param threadCount how many threads there are
    /// @param devices the device of each stream
    /// @param devicePeakBytes the most bytes asked for at once, by device
    /// @param mixed whether a block is used or freed on another device than its own
    public record Origins(int[] threads, int threadCount, int[] devices, long[] devicePeakBytes, boolean mixed) {
        public int deviceCount() {
            return devicePeakBytes.length;
        }

        /// The most bytes asked for at once on one device.
        public long largestPeakBytes() {
            return Arrays.stream(devicePeakBytes).max().orElse(0);
        }

        /// The sum of what each device was asked for at most.
        public long sumOfPeakBytes() {
            return Arrays.stream(devicePeakBytes).sum();
        }
    }

    /// The same rows, all of one thread.
    public Trace onOneThread() {
        return with(
                slots,
                slotCount,
                new Origins(new int[ops.length], 1, origins.devices, origins.devicePeakBytes, origins.mixed));
    }

    /// The same rows, all of one device.
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

    /// The same rows, with a slot for each block, so that no block has to wait for the slot of another.
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
                otherOrigins);
    }

    /// Whether a row allocates or frees.
    public static boolean isOperation(byte op) {
        return op <= FREE;
    }
}
