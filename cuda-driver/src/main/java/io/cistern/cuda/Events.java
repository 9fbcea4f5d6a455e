package io.cistern.cuda;

/// Creates and records events: marks in a stream that other streams and the host can wait for.
public interface Events {
    /// Creates an event without timing, which is cheaper (`cuEventCreate` with `DISABLE_TIMING`).
    long create(int device);

    /// Creates an event with timing (`cuEventCreate` with flags 0).
    long createTimed(int device);

    /// Marks the current end of the stream (`cuEventRecord`). Recording again replaces the earlier mark.
    void record(int device, long event, long stream);

    /// Marks the current end of all streams of the device's primary context, including streams unknown to
    /// Cistern (`cuCtxRecordEvent`, since CUDA 12.5). The event has passed when all these streams have
    /// passed their marks.
    ///
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] from an older driver,
    ///     [CudaResult#STREAM_CAPTURE_UNSUPPORTED] while a stream of the context is being captured
    void recordAll(int device, long event);

    /// Returns whether the stream has passed the mark; true if the event was never recorded (`cuEventQuery`).
    boolean hasPassed(int device, long event);

    /// Waits on the host until the stream has passed the mark (`cuEventSynchronize`).
    void synchronize(int device, long event);

    /// Returns the milliseconds between two timed marks (`cuEventElapsedTime`).
    ///
    /// @throws CudaException [CudaResult#NOT_READY] if a mark has not been passed yet,
    ///     [CudaResult#INVALID_HANDLE] if an event is untimed or was never recorded
    float elapsedMillis(int device, long start, long end);

    /// Destroys an event (`cuEventDestroy_v2`); waits already enqueued for it remain in effect.
    void destroy(int device, long event);
}
