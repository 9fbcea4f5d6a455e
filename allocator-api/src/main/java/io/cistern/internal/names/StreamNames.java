package io.cistern.internal.names;

import io.cistern.cuda.Streams;

/// Names streams in messages: one stream has one name in all of them.
public final class StreamNames {
    private StreamNames() {}

    /// Returns `stream 0x…`, or the name of a default stream.
    ///
    /// @param stream a handle; the complement of a thread's number for the default stream of that thread
    public static String of(long stream) {
        if (stream < 0) {
            return "the default stream of thread #" + ~stream;
        }
        boolean isLegacy = stream == 0 || stream == Streams.LEGACY_DEFAULT;
        return isLegacy ? "the legacy default stream" : "stream 0x" + Long.toHexString(stream);
    }
}
