package io.cistern.adaptors;

import java.time.Duration;
import java.util.List;

/// A live block, and where it was asked for.
///
/// @param address where it begins
/// @param byteSize bytes asked for
/// @param device the device
/// @param stream the stream of its first use
/// @param thread the name of the thread that allocated it
/// @param nanoTime when, as [System#nanoTime] counts
/// @param site the program's frames, the innermost first
public record TrackedBlock(
        long address,
        long byteSize,
        int device,
        long stream,
        String thread,
        long nanoTime,
        List<StackWalker.StackFrame> site) {
    /// How long it has been alive.
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - nanoTime);
    }

    /// Several lines: what it is, then its site, a frame a line.
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("0x%x: %d bytes on device %d, stream 0x%x, by %s, %d ms ago"
                .formatted(address, byteSize, device, stream, thread, age().toMillis()));
        site.forEach(frame -> text.append("\n    at ").append(frame.toStackTraceElement()));
        return text.toString();
    }
}
