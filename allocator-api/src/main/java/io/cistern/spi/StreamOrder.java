package io.cistern.spi;

/// Order between streams, for allocators that move memory from one to another.
///
/// A *fence* is a mark in one stream: the end of all that the stream had been given when it was recorded. Fences
/// cost a driver call each, so an allocator records one when memory is wanted, for all that was freed until then,
/// rather than one for each free.
///
/// **Streams.** A stream is named by its handle on its device. 0 and 1 are both the legacy default stream; 2 is
/// the per-thread default stream *of the calling thread*, so a fence on another thread's can't be had, and on a
/// virtual thread there is none. A handle names a stream from its creation to the announcement of its end
/// ([DeviceAllocator#streamClosing]); if it comes again, that is another stream, and nothing that was recorded
/// for the first may be taken for the second. Between the two nothing may be recorded on it and nothing made to
/// wait: so an allocator takes its fences of a stream when that is announced to end. Fences outlive their
/// streams.
///
/// **A fence can always be had.** A free has no way back, so [#record] and [#recordAll] do not fail. Whatever the
/// driver says, and if the Java heap is full, there is one rule:
///
/// 1. The fence is behind the stream;
/// 2. where the driver does not mark that one (it is captured, or ended without being announced), behind all
/// streams of the device;
/// 3. where it does not mark those either (`cuCtxRecordEvent` came with CUDA 12.5), the host has waited for them:
/// the fence is 0, which has passed, and all methods take;
/// 4. where it refuses that too, as beside captures, the fence is *owed*: each question for it asks the driver
/// again, and it passes some time after the driver has answered.
///
/// In a dead context nothing runs any more, and all fences have passed.
///
/// **Threads.** Any thread may call any method at any time, also several for one fence, but none for a fence that
/// is being released. Only [#synchronize] waits for work, and step 3. None is called under a lock that the way of
/// an ordinary allocation takes.
///
/// **Errors.** Only [#await] and [#synchronize] throw [io.cistern.cuda.CudaException] where the driver refuses,
/// also because the context is dead.
public interface StreamOrder {
    /// Marks the present end of a stream, or of all streams if that can't be marked.
    ///
    /// @param device the device of the stream
    /// @param stream a stream that exists; 2 for the calling thread's own
    /// @return a fence, to be [released][#release] later; 0 if nothing is left to wait for
    long record(int device, long stream);

    /// Returns whether a fence can be recorded on a stream now. Not while it is captured into a graph: then it
    /// runs nothing, but its present end can't be told apart from that of the capture.
    ///
    /// @param stream a stream that exists
    default boolean recordable(int device, long stream) {
        return true;
    }

    /// Marks the present end of all streams of a device, for work on a stream that can't be named: another
    /// thread's default stream, or one that ended. A fence like others; it costs waiting for more than was meant.
    long recordAll(int device);

    /// Returns whether the stream has got past the fence. Does not wait, but for a fence that is owed, as step 3
    /// does.
    ///
    /// @param device the device that the fence was recorded on
    /// @return false also where the driver does not tell now
    boolean passed(int device, long fence);

    /// Returns whether a stream ignores the legacy default stream, which [#finished] needs. The answer for a
    /// stream does not change.
    ///
    /// @param stream a stream that exists
    /// @return false also where that can't be known, as by default
    default boolean independent(int device, long stream) {
        return false;
    }

    /// Returns whether all that an [independent][#independent] stream was given until now has finished. Does not
    /// wait. It is one driver call, half the cost of a fence that is asked at once. It must not be asked of other
    /// streams: one that waits for the legacy default stream may be idle although its next work comes after
    /// unfinished work.
    ///
    /// @param stream a stream that exists
    /// @return false also where that can't be known now, as by default
    default boolean finished(int device, long stream) {
        return false;
    }

    /// Makes work that is given to a stream from now on run after the fence. Neither the host nor work
    /// given before waits.
    ///
    /// @param device the device of the stream and the fence
    /// @param stream a stream that exists, also the fence's own, for which it is no wait
    void await(int device, long stream, long fence);

    /// Returns whether a stream can be made to wait for a fence now, as far as is known without asking the
    /// driver: not for one that is owed while it can't be had.
    default boolean awaitable(int device, long fence) {
        return true;
    }

    /// Waits on the host until the stream has got past the fence; a virtual thread leaves its carrier meanwhile.
    ///
    /// @param device the device that the fence was recorded on
    /// @throws io.cistern.cuda.CudaException [io.cistern.cuda.CudaResult#STREAM_CAPTURE_UNSUPPORTED] while
    ///     streams are captured, for a fence that is owed
    void synchronize(int device, long fence);

    /// Releases a fence, which may not have passed yet. To be called once for each fence. Streams that were made
    /// to wait for it still do.
    ///
    /// @param device the device that the fence was recorded on
    void release(int device, long fence);
}
