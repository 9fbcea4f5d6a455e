package io.cistern.internal.capture;

/// Announces the ends of streams to all who keep something for them.
@FunctionalInterface
public interface StreamAnnouncer {
    /// Announces the end of a stream that still exists.
    void streamClosing(int device, long stream);
}
