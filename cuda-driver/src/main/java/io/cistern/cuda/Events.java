package io.cistern.cuda;

/// Events: marks in a stream that others can wait for.
public interface Events {
    /// Creates an event without timing (`cuEventCreate` with `DISABLE_TIMING`), the cheap kind.
    long create(int device);

    /// Creates an event that takes the time (`cuEventCreate` with flags 0).
    long createTimed(int device);

    /// Marks the stream's present end (`cuEventRecord`); recording again forgets the earlier mark.
    void record(int device, long event, long stream);

    /// Marks the present end of all streams of the device's primary context, those included that the program never
    /// named to anybody (`cuCtxRecordEvent`, since CUDA 12.5). The event passes when all of them have passed.
    ///
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] from a driver that is older,
    ///     [CudaResult#STREAM_CAPTURE_UNSUPPORTED] while a stream of the context is being captured
    void recordAll(int device, long event);

    /// Whether the stream has passed the mark; true if never recorded (`cuEventQuery`).
    boolean hasPassed(int device, long event);

    /// Waits until the stream has passed the mark (`cuEventSynchronize`).
    void synchronize(int device, long event);

    /// Milliseconds between two timed marks (`cuEventElapsedTime`).
    ///
    /// @throws CudaException [CudaResult#NOT_READY] if one was not passed, [CudaResult#INVALID_HANDLE] if one is
    ///     untimed or was never recorded
    float elapsedMillis(int device, long start, long end);

    /// Destroys an event (`cuEventDestroy_v2`); waits that were already made for it stay.
    void destroy(int device, long event);
}
