package io.cistern.cuda;

/// Streams, their order, and host functions.
public interface Streams {
    /// The legacy default stream, which all blocking streams of the context wait for and which waits for them.
    long LEGACY_DEFAULT = 1;

    /// The calling OS thread's own default stream.
    long PER_THREAD_DEFAULT = 2;

    /// Creates a stream that does not wait for the legacy default stream (`cuStreamCreate` with `NON_BLOCKING`).
    long create(int device);

    /// Creates a stream (`cuStreamCreateWithPriority`).
    ///
    /// @param nonBlocking whether it ignores the legacy default stream
    /// @param priority lower numbers go first; values outside the device's range are clamped
    long create(int device, boolean nonBlocking, int priority);

    /// Destroys a stream (`cuStreamDestroy_v2`); work already in it still runs to its end.
    void destroy(int device, long stream);

    /// Waits until all work of the stream is done (`cuStreamSynchronize`).
    void synchronize(int device, long stream);

    /// Whether all work of the stream is done (`cuStreamQuery`).
    boolean isIdle(int device, long stream);

    /// Whether the stream waits for the legacy default stream, and that one for it (`cuStreamGetFlags`); true of the
    /// default streams.
    boolean isBlocking(int device, long stream);

    /// Makes later work of the stream wait for what the event recorded last (`cuStreamWaitEvent`); an event never
    /// recorded is no wait.
    void await(int device, long stream, long event);

    /// A number that no other stream of this process ever has, unlike the handle (`cuStreamGetId`, driver 12.0).
    long id(int device, long stream);

    /// Runs code on the host when the stream gets there (`cuLaunchHostFunc`). The code must not call the driver;
    /// what it throws is swallowed.
    void launchHostFunction(int device, long stream, Runnable function);
}
