package io.cistern.buffers;

import io.cistern.CudaStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// A list of copies that are enqueued together. [#submit] checks all of them before it enqueues the
/// first. A blocking batch waits after its last copy, and also after each copy to an array.
///
/// ```java
/// new CopyBatch().toDevice(x, floats).toDevice(y, more).onDevice(z, x).submit(stream, CopyMode.BLOCKING);
/// ```
///
/// The result is as if the copies ran one by one, in the order in which they were added. Sizes and modes
/// follow the rules of [DeviceBuffer]'s copies.
///
/// Successive copies share one driver call if all of these conditions hold; other copies are enqueued
/// one by one.
///
/// - Each is a copy on one device, or one from or to a [PinnedBuffer].
/// - None of them writes memory that another one reads or writes.
/// - The driver takes batches (CUDA 13.0 or later), the stream is not a default stream, and no stream of
///   the device is being captured.
///
/// **Threads.** One thread at a time.
public final class CopyBatch {
    private final List<BatchCopy> copies = new ArrayList<>();

    /// Creates an empty batch.
    public CopyBatch() {}

    /// Adds a copy of host memory to the beginning of a buffer.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the source is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, MemorySegment source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(new BatchCopy.HostToDevice(target, source));
        return this;
    }

    /// Adds a copy of pinned memory to the beginning of a buffer. The pinned buffer may be closed after
    /// [#submit].
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the source is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, PinnedBuffer source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(new BatchCopy.PinnedToDevice(target, source));
        return this;
    }

    /// Adds a copy of a buffer to pinned memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the target is shorter than the buffer
    public CopyBatch toHost(PinnedBuffer target, DeviceBuffer source) {
        CopySizes.requireFits("buffer", source.byteSize(), "target", target.byteSize());
        copies.add(new BatchCopy.DeviceToPinned(target, source));
        return this;
    }

    /// Adds a copy of a buffer to host memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the target is shorter than the buffer
    public CopyBatch toHost(MemorySegment target, DeviceBuffer source) {
        CopySizes.requireFits("buffer", source.byteSize(), "target", target.byteSize());
        copies.add(new BatchCopy.DeviceToHost(target, source));
        return this;
    }

    /// Adds a copy of one buffer to the beginning of another, which may be on another device.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the source is longer than the target
    public CopyBatch onDevice(DeviceBuffer target, DeviceBuffer source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(
                target.device() == source.device()
                        ? new BatchCopy.OnDevice(target, source)
                        : new BatchCopy.BetweenDevices(target, source));
        return this;
    }

    /// Returns the number of copies in the batch.
    public int count() {
        return copies.size();
    }

    /// Enqueues all copies on one stream, in the order in which they were added, and empties the batch.
    ///
    /// @param stream a stream of the device that runs the copies: the buffer's device for copies to or from
    ///     the host, the source's device for copies between buffers
    /// @throws IllegalStateException if a buffer, or the arena of some host memory, is closed; or if the
    ///     stream is being captured and either the batch is blocking or some host memory is an array.
    ///     Nothing is enqueued then
    /// @throws IllegalArgumentException if a target is read-only, if the batch is non-blocking and a target
    ///     is an array, or if a source and its target overlap. Nothing is enqueued then
    /// @throws WrongThreadException if some host memory is in another thread's confined arena. Nothing is
    ///     enqueued then
    public void submit(long stream, CopyMode mode) {
        copies.forEach(copy -> copy.check(stream, mode));
        copies.forEach(copy -> CaptureRules.requireNoWait(copy.device(), stream, mode));
        IndependentCopies together = new IndependentCopies(stream);
        copies.forEach(together::add);
        together.submit();
        if (mode == CopyMode.BLOCKING && !copies.isEmpty()) {
            DeviceBuffer last = copies.getLast().device();
            last.memory().driver().streams().synchronize(last.device(), stream);
        }
        copies.clear();
    }

    /// Submits the copies on a stream: see [#submit(long, CopyMode)].
    public void submit(CudaStream stream, CopyMode mode) {
        submit(stream.handle(), mode);
    }
}
