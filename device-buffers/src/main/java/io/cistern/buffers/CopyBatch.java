package io.cistern.buffers;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Copies that are enqueued together: all are checked first, so that either all are enqueued or none, and a blocking
/// batch waits once.
///
/// ```java
/// new CopyBatch().toDevice(x, floats).toDevice(y, more).onDevice(z, x).submit(stream, CopyMode.BLOCKING);
/// ```
///
/// They run as if in the order in which they were added. Ranges and modes are those of [DeviceBuffer]'s copies.
///
/// Copies on one device, and from and to a [PinnedBuffer], go to the driver together where it takes batches (CUDA
/// 13.0) and none writes what another one reads or writes; all others one by one.
///
/// **Threads.** One thread at a time.
public final class CopyBatch {
    private final List<BatchCopy> copies = new ArrayList<>();

    /// An empty batch.
    public CopyBatch() {}

    /// Adds a copy of host memory to the beginning of a buffer.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, MemorySegment source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(new BatchCopy.HostToDevice(target, source));
        return this;
    }

    /// Adds a copy of pinned memory to the beginning of a buffer. It may be closed once the batch was submitted.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, PinnedBuffer source) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        copies.add(new BatchCopy.PinnedToDevice(target, source));
        return this;
    }

    /// Adds a copy of a buffer to pinned memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the memory is shorter than the buffer
    public CopyBatch toHost(PinnedBuffer target, DeviceBuffer source) {
        CopySizes.requireFits("buffer", source.byteSize(), "target", target.byteSize());
        copies.add(new BatchCopy.DeviceToPinned(target, source));
        return this;
    }

    /// Adds a copy of a buffer to host memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the memory is shorter than the buffer
    public CopyBatch toHost(MemorySegment target, DeviceBuffer source) {
        CopySizes.requireFits("buffer", source.byteSize(), "target", target.byteSize());
        copies.add(new BatchCopy.DeviceToHost(target, source));
        return this;
    }

    /// Adds a copy of one buffer to the beginning of another, which may lie on another device.
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

    /// How many copies were added.
    public int count() {
        return copies.size();
    }

    /// Enqueues all copies in the order of one stream, and empties the batch.
    ///
    /// @param stream a stream of the devices that work: of buffers copied to or from the host, and of sources
    /// @throws IllegalStateException if a buffer is closed, or a memory's arena: nothing is enqueued then
    /// @throws IllegalArgumentException if memory can't be copied to in this mode, or ranges overlap: nothing is
    ///     enqueued then
    public void submit(long stream, CopyMode mode) {
        copies.forEach(copy -> copy.check(mode));
        IndependentCopies together = new IndependentCopies(stream);
        copies.forEach(together::add);
        together.submit();
        if (mode == CopyMode.BLOCKING && !copies.isEmpty()) {
            DeviceBuffer last = copies.getLast().device();
            last.memory().driver().streams().synchronize(last.device(), stream);
        }
        copies.clear();
    }
}
