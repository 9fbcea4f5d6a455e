package io.cistern.cli;

/// An allocation trace, checked, in the form that a replay walks through without garbage.
///
/// Row `i` is an allocation if `slots[i] >= 0`, of `byteSizes[i]` bytes on stream number `streams[i]`, to be
/// remembered in that slot; otherwise it frees the block in slot `~slots[i]`. Ids of the file have become slots: a
/// slot is used again after its free, so there are as many as blocks were ever live at once. Streams are numbered
/// from 0 in the order of their first row.
///
/// Invariant: walking the rows, an allocation finds its slot empty and a free finds it taken.
///
/// @param name what people call it: the file's name without folder and ending
/// @param slots one a row
/// @param byteSizes one a row; 0 for a free
/// @param streams one a row; for a free that of the block
/// @param slotCount how many slots there are
/// @param streamCount how many streams there are
/// @param requestedPeakBytes the most bytes asked for at once
@SuppressWarnings("ArrayRecordComponent") // Nobody compares or prints traces; the loops want plain arrays.
record Trace(
        String name,
        int[] slots,
        long[] byteSizes,
        int[] streams,
        int slotCount,
        int streamCount,
        long requestedPeakBytes) {
    /// How many rows it has.
    int operations() {
        return slots.length;
    }
}
