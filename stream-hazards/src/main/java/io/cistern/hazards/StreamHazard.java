package io.cistern.hazards;

import io.cistern.cuda.settings.ByteSizes;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// Two uses of the same memory without stream order between them, or a use that comes too early or too
/// late.
///
/// @param kind what is wrong
/// @param first the earlier call
/// @param second the later call, in which the hazard was found
/// @param device the device of the memory
/// @param address where the bytes of the second call begin
/// @param byteSize the bytes of the second call from there on; 1 if only a pointer is known
/// @param advice how to correct the program
public record StreamHazard(
        Kind kind, Place first, Place second, int device, long address, long byteSize, String advice) {
    /// The kind of mistake.
    public enum Kind {
        /// A stream uses a block and does not wait for its allocation on another stream.
        USE_BEFORE_ALLOCATION,
        /// Two streams use the same bytes, at least one writes them, and neither waits for the other.
        RACE,
        /// A block was freed on a stream that does not wait for an unrecorded use on another stream.
        FREE_BEFORE_USE_ENDS,
        /// The host touches pinned or managed memory, although work that uses it is not known to have
        /// finished.
        HOST_TOO_EARLY,
        /// A block is used after its free.
        USE_AFTER_FREE,
        /// An allocator reused memory for a stream that does not wait for the memory's earlier uses.
        REUSED_TOO_EARLY;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /// One of the two calls.
    ///
    /// @param call what was called, such as `launch` or `free`
    /// @param stream the stream's handle; [#HOST] for the host
    /// @param isWrite whether the call writes the bytes
    /// @param byteSize how many bytes the call uses
    /// @param thread the name of the calling thread
    /// @param nanos the time of the call, by [System#nanoTime]
    /// @param stack the program's own frames, the innermost first; without those of Cistern and of the JDK
    public record Place(
            String call,
            long stream,
            boolean isWrite,
            long byteSize,
            String thread,
            long nanos,
            List<StackTraceElement> stack) {
        /// The value of `stream` if the host itself reads or writes.
        public static final long HOST = -1;

        /// Returns whether the call launches a kernel that was not declared to only read the bytes.
        boolean mayOnlyRead() {
            return isWrite && call.toLowerCase(Locale.ROOT).contains("launch");
        }

        /// Returns the program's innermost frame, or the call if there is none.
        String line() {
            return stack.isEmpty() ? call : stack.getFirst().toString();
        }

        @Override
        public String toString() {
            String where = stream == HOST ? "" : " on stream 0x" + Long.toHexString(stream);
            String what = stream == HOST ? (isWrite ? "write by the host" : "read by the host") : call;
            return what + " of " + ByteSizes.count(byteSize) + where + " by thread " + thread
                    + stack.stream().map(frame -> "\n      at " + frame).collect(Collectors.joining());
        }
    }

    @Override
    public String toString() {
        return kind + " at 0x" + Long.toHexString(address) + " on device " + device + "\n  first:  " + first
                + "\n  second: " + second + "\n  " + advice;
    }
}
