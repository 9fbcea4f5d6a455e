package io.cistern.cuda;

/// Creates and orders streams, and runs host functions.
public interface Streams {
    /// The legacy default stream. It and all blocking streams of the context wait for each other.
    long LEGACY_DEFAULT = 1;

    /// The calling OS thread's own default stream.
    long PER_THREAD_DEFAULT = 2;

    /// Creates a stream that does not wait for the legacy default stream (`cuStreamCreate` with `NON_BLOCKING`).
    long create(int device);

    /// Creates a stream (`cuStreamCreateWithPriority`).
    ///
    /// @param nonBlocking whether it ignores the legacy default stream
    /// @param priority lower numbers have higher priority; values outside the device's range are clamped
    long create(int device, boolean nonBlocking, int priority);

    /// Destroys a stream (`cuStreamDestroy_v2`); work already enqueued still completes.
    void destroy(int device, long stream);

    /// Waits until all work of the stream is done (`cuStreamSynchronize`).
    void synchronize(int device, long stream);

    /// Returns whether all work of the stream is done (`cuStreamQuery`).
    boolean isIdle(int device, long stream);

    /// Returns whether the stream and the legacy default stream wait for each other (`cuStreamGetFlags`); true
    /// for the default streams.
    boolean isBlocking(int device, long stream);

    /// Makes later work of the stream wait for the event's latest mark (`cuStreamWaitEvent`). Does nothing
    /// if the event was never recorded.
    void await(int device, long stream, long event);

    /// Returns a number that, unlike the handle, no other stream of this process ever has (`cuStreamGetId`,
    /// driver 12.0).
    long id(int device, long stream);

    /// Enqueues code that runs on the host after all earlier work of the stream (`cuLaunchHostFunc`); later
    /// work of the stream waits for it. The code must not call the driver. Exceptions that it throws are
    /// swallowed.
    void launchHostFunction(int device, long stream, Runnable function);
}
