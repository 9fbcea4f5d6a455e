package io.cistern.adaptors;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.StreamNames;
import java.time.Duration;
import java.util.List;

/// A live block and the code that allocated it.
///
/// @param address the start of the block
/// @param byteSize the requested bytes
/// @param device the device
/// @param stream the stream it was allocated for
/// @param thread the name of the thread that allocated it
/// @param nanoTime the time of the allocation, by [System#nanoTime]
/// @param site the program's stack frames that allocated it, the innermost first
public record TrackedBlock(
        long address,
        long byteSize,
        int device,
        long stream,
        String thread,
        long nanoTime,
        List<StackWalker.StackFrame> site) {
    /// Returns how long the block has been alive.
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - nanoTime);
    }

    /// Returns several lines: the block, then its site with one frame a line.
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("0x" + Long.toHexString(address) + ": " + ByteSizes.count(byteSize)
                + " on device " + device + ", " + StreamNames.of(stream) + ", by " + thread + ", "
                + age().toMillis() + " ms ago");
        site.forEach(frame -> text.append("\n    at ").append(frame.toStackTraceElement()));
        return text.toString();
    }
}
