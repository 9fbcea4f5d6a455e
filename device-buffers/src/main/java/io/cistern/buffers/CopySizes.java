package io.cistern.buffers;

import io.cistern.cuda.settings.ByteSizes;

/// Checks that copies fit into their targets.
final class CopySizes {
    private CopySizes() {}

    /// @param from the source's name in the message: `source`
    /// @param to the target's name in the message: `buffer`
    /// @throws IndexOutOfBoundsException if the source is longer; the message has both sizes
    static void requireFits(String from, long fromBytes, String to, long toBytes) {
        if (fromBytes > toBytes) {
            throw new IndexOutOfBoundsException(
                    from + " has " + ByteSizes.count(fromBytes) + ", but " + to + " only " + toBytes);
        }
    }
}
