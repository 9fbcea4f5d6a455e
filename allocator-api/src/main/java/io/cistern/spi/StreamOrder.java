package io.cistern.spi;

/// Records fences and orders streams, for allocators that move memory from one stream to another.
///
/// A *fence* marks a point in one stream: the end of all work that was enqueued when the fence was
/// recorded. A fence costs a driver call. So an allocator should not record one for each free, but only one
/// when it needs memory, for all memory freed on the stream until then.
///
/// **Streams.** A stream is named by its handle on its device. 0 and 1 are both the legacy default stream;
/// 2 is the per-thread default stream *of the calling thread*, so no fence can be recorded on the default
/// stream of another thread, and a virtual thread has none. A handle names a stream from its creation until
/// its end is announced ([DeviceAllocator#streamClosing]). After the announcement, an allocator must not
/// record a fence on the stream or make the stream wait; it records the fences that it needs when the end
/// is announced. If the handle is reused, it names another stream, and records about the first stream do
/// not apply to the second. Fences outlive their streams.
///
/// **Recording never fails.** A free can't be undone, so [#record] and [#recordAll] do not fail, even if the
/// driver refuses or the Java heap is full. They fall back in this order:
///
/// 1. The fence marks the end of the stream.
/// 2. If the driver can't mark that stream, for example because it ended without being announced, the fence
/// marks the end of all streams of the device.
/// 3. If the driver can't mark those either (`cuCtxRecordEvent` came with CUDA 12.5), the host waits for
/// them. The result is then 0, a fence that has passed and that all methods accept.
/// 4. If none of that is possible, as during a capture or when the Java heap is full, the fence is *owed*:
/// each query asks the driver again to record the fence, which passes some time after the driver accepts.
///
/// In a dead context no work runs any more, and all fences have passed.
///
/// **Threads.** Any thread may call any method at any time. Several threads may use one fence concurrently,
/// but none may use a fence that is being released. Only [#synchronize] and step 3 wait for work on the
/// device. Call no method under a lock that ordinary allocations take.
///
/// **Errors.** Only [#await] and [#synchronize] throw [io.cistern.cuda.CudaException] if the driver refuses,
/// for example because the context is dead.
public interface StreamOrder {
    /// Records a fence at the current end of a stream, or of all streams of the device if that stream can't
    /// be marked.
    ///
    /// @param device the device of the stream
    /// @param stream a stream that exists; 2 for the calling thread's own
    /// @return a fence, which the caller [releases][#release] later; 0 if nothing is left to wait for
    long record(int device, long stream);

    /// Returns whether a fence can be recorded on a stream now. The result is false while the stream is
    /// captured into a graph, because the driver would record the fence into the graph.
    ///
    /// @param stream a stream that exists
    default boolean recordable(int device, long stream) {
        return true;
    }

    /// Records a fence at the current end of all streams of a device, for work on a stream that no handle
    /// names on this thread now: the default stream of another thread, or a stream that has ended. The
    /// fence covers more work than necessary, so it may pass later.
    long recordAll(int device);

    /// Returns whether the stream has passed the fence. Does not wait, with one exception: for an owed
    /// fence, the host may wait for all streams of the device, as in step 3 of [StreamOrder].
    ///
    /// @param device the device that the fence was recorded on
    /// @return true if the stream has passed the fence; false if not, or if unknown now
    boolean passed(int device, long fence);

    /// Returns whether a stream is independent of the legacy default stream, as [#finished] requires. The
    /// result for a stream never changes.
    ///
    /// @param stream a stream that exists
    /// @return true if the stream is independent; false if not, or if unknown
    default boolean independent(int device, long stream) {
        return false;
    }

    /// Returns whether an [independent][#independent] stream has finished all work enqueued so far. Does
    /// not wait. This takes one driver call; recording a fence and querying it take two. Do not call this
    /// method for other streams: a stream that waits for the legacy default stream may be idle although its
    /// next work must wait for unfinished work on the legacy default stream.
    ///
    /// @param stream a stream that exists
    /// @return true if the stream has finished; false if not, or if unknown now
    default boolean finished(int device, long stream) {
        return false;
    }

    /// Makes work enqueued later on a stream run after the fence. Neither the host nor work enqueued
    /// earlier waits.
    ///
    /// @param device the device of the stream and the fence
    /// @param stream a stream that exists; if it is the fence's own stream, nothing waits
    void await(int device, long stream, long fence);

    /// Returns whether a stream can be made to wait for a fence now, as far as is known without a driver
    /// call. For an owed fence, the result is false while the driver refuses to record the fence.
    default boolean awaitable(int device, long fence) {
        return true;
    }

    /// Waits on the host until the stream has passed the fence; a waiting virtual thread unmounts from its
    /// carrier.
    ///
    /// @param device the device that the fence was recorded on
    /// @throws io.cistern.cuda.CudaException [io.cistern.cuda.CudaResult#STREAM_CAPTURE_UNSUPPORTED] if the
    ///     fence is owed and streams are captured
    void synchronize(int device, long fence);

    /// Releases a fence, whether it has passed or not. Call this method once for each fence. Streams that
    /// were made to wait for the fence still wait.
    ///
    /// @param device the device that the fence was recorded on
    void release(int device, long fence);
}
