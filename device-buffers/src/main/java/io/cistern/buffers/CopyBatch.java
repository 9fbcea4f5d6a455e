package io.cistern.buffers;

import io.cistern.CudaStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Copies that are enqueued together. All are checked before the first is enqueued. A blocking batch waits once for
/// all its copies, and separately only for copies to arrays.
///
/// ```java
/// new CopyBatch().toDevice(x, floats).toDevice(y, more).onDevice(z, x).submit(stream, CopyMode.BLOCKING);
/// ```
///
/// The copies have the effect of running in the order in which they were added. Sizes and modes are as for
/// [DeviceBuffer]'s copies.
///
/// Copies on one device, and from and to a [PinnedBuffer], go to the driver in one call if the driver takes batches
/// (CUDA 13.0 or later) and no copy writes memory that another one reads or writes. All others go one by one.
///
/// **Threads.** One thread at a time.
public final class CopyBatch {
    private final List<BatchCopy> copies = new ArrayList<>();

    /// Makes an empty batch.
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
    /// @throws IndexOutOfBoundsException if the source is longer
    public CopyBatch onDevice(DeviceBuffer target, DeviceBuffer source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(
                target.device() == source.device()
                        ? new BatchCopy.OnDevice(target, source)
                        : new BatchCopy.BetweenDevices(target, source));
        return this;
    }

    /// Returns the number of copies that were added.
    public int count() {
        return copies.size();
    }

    /// Enqueues all copies in the order of one stream, and empties the batch.
    ///
    /// @param stream a stream of the device that makes the copies: for copies to or from the host, the buffer's
    ///     device; for all others, the source's
    /// @throws IllegalStateException if a buffer or the arena of host memory is closed, or the stream is being
    ///     captured and the batch is blocking or host memory is an array: nothing is enqueued then
    /// @throws IllegalArgumentException if a target can't be copied to in this mode, or ranges overlap: nothing
    ///     is enqueued then
    /// @throws WrongThreadException if host memory is in another thread's confined arena: nothing is enqueued
    ///     then
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

    /// Submits the copies in the order of a stream: see [#submit(long, CopyMode)].
    public void submit(CudaStream stream, CopyMode mode) {
        submit(stream.handle(), mode);
    }
}
