package io.cistern;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// Copies that are enqueued together: all are checked first, so that either all are enqueued or none, and a blocking
/// batch waits once.
///
/// ```java
/// new CopyBatch().toDevice(x, floats).toDevice(y, more).onDevice(z, x).submit(stream, CopyMode.BLOCKING);
/// ```
///
/// They run in the order in which they were added. Ranges and modes are those of [DeviceBuffer]'s copies.
///
/// **Threads.** One thread at a time.
public final class CopyBatch {
    private final List<Copy> copies = new ArrayList<>();

    /// An empty batch.
    public CopyBatch() {}

    /// Adds a copy of host memory to the beginning of a buffer.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, MemorySegment source) {
        Objects.checkFromIndexSize(0, source.byteSize(), target.byteSize());
        copies.add(new ToDevice(target, source));
        return this;
    }

    /// Adds a copy of a buffer to host memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the memory is shorter than the buffer
    public CopyBatch toHost(MemorySegment target, DeviceBuffer source) {
        Objects.checkFromIndexSize(0, source.byteSize(), target.byteSize());
        copies.add(new ToHost(target, source));
        return this;
    }

    /// Adds a copy of one buffer to the beginning of another, which may lie on another device.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the source is longer
    public CopyBatch onDevice(DeviceBuffer target, DeviceBuffer source) {
        Objects.checkFromIndexSize(0, source.byteSize(), target.byteSize());
        copies.add(new OnDevice(target, source));
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
        copies.forEach(copy -> copy.enqueue(stream));
        if (mode == CopyMode.BLOCKING && !copies.isEmpty()) {
            DeviceBuffer last = copies.getLast().device();
            last.memory().driver().streams().synchronize(last.device(), stream);
        }
        copies.clear();
    }

    private sealed interface Copy {
        /// A buffer of the stream's device.
        DeviceBuffer device();

        void check(CopyMode mode);

        void enqueue(long stream);
    }

    private record ToDevice(DeviceBuffer device, MemorySegment source) implements Copy {
        @Override
        public void check(CopyMode mode) {
            long _ = device.address();
            HostCopies.requireUsable(source);
        }

        @Override
        public void enqueue(long stream) {
            HostCopies.toDevice(device, source, stream, CopyMode.NON_BLOCKING);
        }
    }

    private record ToHost(MemorySegment target, DeviceBuffer device) implements Copy {
        @Override
        public void check(CopyMode mode) {
            long _ = device.address();
            HostCopies.requireWritable(target, mode);
        }

        @Override
        public void enqueue(long stream) {
            HostCopies.toHost(device, target, stream, target.isNative() ? CopyMode.NON_BLOCKING : CopyMode.BLOCKING);
        }
    }

    private record OnDevice(DeviceBuffer target, DeviceBuffer device) implements Copy {
        @Override
        public void check(CopyMode mode) {
            DeviceCopies.requireApart(target, device);
        }

        @Override
        public void enqueue(long stream) {
            DeviceCopies.on(target, device, stream);
        }
    }
}
