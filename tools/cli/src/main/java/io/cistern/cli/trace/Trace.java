package io.cistern.cli.trace;

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
/// is used again.
///
/// **Invariants.** Walking the rows, an allocation finds its slot empty, a use and a free find it taken. A use on
/// another stream than that of an earlier use comes after a wait for it, a free on another than the allocation's
/// after a wait for that.
///
/// @param name what people call it: the file's name without folder and ending
/// @param ops one a row
/// @param slots one a row
/// @param byteSizes one a row
/// @param streams one a row
/// @param slotCount how many slots there are
/// @param streamCount how many streams there are
/// @param operations how many rows allocate or free
/// @param requestedPeakBytes the most bytes asked for at once
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
        long requestedPeakBytes) {
    public static final byte ALLOCATE = 0;
    public static final byte FREE = 1;
    public static final byte USE = 2;
    public static final byte WAIT = 3;
    public static final byte END = 4;

    /// Whether a row allocates or frees.
    public static boolean isOperation(byte op) {
        return op <= FREE;
    }
}
