package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.StreamNames;
import java.io.Serializable;
import java.util.List;

/// A block, the code that allocated it and the code that freed it, as a checking allocator remembers them.
///
/// @param address the address of the block
/// @param byteSize the requested bytes
/// @param device the device of the block
/// @param stream the stream that the block was allocated for
/// @param allocatedAt the stack frames that allocated the block, the innermost first, without those of the
///     framework
/// @param freedAt the stack frames that freed the block; empty while it is alive
public record BlockHistory(
        long address,
        long byteSize,
        int device,
        long stream,
        List<StackTraceElement> allocatedAt,
        List<StackTraceElement> freedAt)
        implements Serializable {
    /// Copies the frames.
    public BlockHistory {
        allocatedAt = List.copyOf(allocatedAt);
        freedAt = List.copyOf(freedAt);
    }

    /// Returns whether the block is still alive.
    public boolean isAlive() {
        return freedAt.isEmpty();
    }

    /// Returns whether an address lies in the block.
    public boolean covers(long other) {
        return other >= address && other < address + byteSize;
    }

    /// Returns a human-readable text of several lines, with the block and the frames that allocated and
    /// freed it.
    public String describe() {
        StringBuilder text = new StringBuilder("the block of " + ByteSizes.count(byteSize) + " at 0x"
                + Long.toHexString(address) + " on device " + device + ", " + StreamNames.of(stream));
        append(text, "allocated", allocatedAt);
        append(text, "freed", freedAt);
        return text.toString();
    }

    private static void append(StringBuilder text, String what, List<StackTraceElement> frames) {
        if (!frames.isEmpty()) {
            text.append("\n  ").append(what);
            frames.forEach(frame -> text.append("\n    at ").append(frame));
        }
    }
}
