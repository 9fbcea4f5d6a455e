package io.cistern;

import io.cistern.cuda.Copies.Piece;
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
/// They run as if in the order in which they were added. Ranges and modes are those of [DeviceBuffer]'s copies.
///
/// Copies on one device, and from and to a [PinnedBuffer], go to the driver together where it takes batches (CUDA
/// 13.0) and none writes what another one reads or writes; all others one by one.
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

    /// Adds a copy of pinned memory to the beginning of a buffer. It may be closed once the batch was submitted.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    public CopyBatch toDevice(DeviceBuffer target, PinnedBuffer source) {
        Objects.checkFromIndexSize(0, source.byteSize(), target.byteSize());
        copies.add(new PinnedToDevice(target, source));
        return this;
    }

    /// Adds a copy of a buffer to pinned memory.
    ///
    /// @return this
    /// @throws IndexOutOfBoundsException if the memory is shorter than the buffer
    public CopyBatch toHost(PinnedBuffer target, DeviceBuffer source) {
        Objects.checkFromIndexSize(0, source.byteSize(), target.byteSize());
        copies.add(new ToPinned(target, source));
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
        IndependentCopies together = new IndependentCopies(stream);
        copies.forEach(together::add);
        together.submit();
        if (mode == CopyMode.BLOCKING && !copies.isEmpty()) {
            DeviceBuffer last = copies.getLast().device();
            last.memory().driver().streams().synchronize(last.device(), stream);
        }
        copies.clear();
    }

    /// One copy.
    sealed interface Copy {
        /// A buffer of the stream's device.
        DeviceBuffer device();

        void check(CopyMode mode);

        void enqueue(long stream);

        /// Whether the driver may make it with others in one call.
        default boolean isForBatches() {
            return false;
        }

        /// What a batch copies.
        default Piece piece() {
            throw new UnsupportedOperationException();
        }

        /// Says that a batch on a stream uses its memory.
        default void recordUses(long stream) {
            throw new UnsupportedOperationException();
        }
    }

    private record PinnedToDevice(DeviceBuffer device, PinnedBuffer source) implements Copy {
        @Override
        public void check(CopyMode mode) {
            long _ = device.address();
            HostCopies.requireUsable(source.segment());
        }

        @Override
        public void enqueue(long stream) {
            device.copyFrom(source, stream, CopyMode.NON_BLOCKING);
        }

        @Override
        public boolean isForBatches() {
            return true;
        }

        @Override
        public Piece piece() {
            return new Piece(device.address(), source.segment().address(), source.byteSize());
        }

        @Override
        public void recordUses(long stream) {
            source.recordUse(device.device(), stream);
            long _ = device.addressOn(stream);
        }
    }

    private record ToPinned(PinnedBuffer target, DeviceBuffer device) implements Copy {
        @Override
        public void check(CopyMode mode) {
            long _ = device.address();
            HostCopies.requireUsable(target.segment());
        }

        @Override
        public void enqueue(long stream) {
            device.copyTo(target, stream, CopyMode.NON_BLOCKING);
        }

        @Override
        public boolean isForBatches() {
            return true;
        }

        @Override
        public Piece piece() {
            return new Piece(target.segment().address(), device.address(), device.byteSize());
        }

        @Override
        public void recordUses(long stream) {
            target.recordUse(device.device(), stream);
            long _ = device.addressOn(stream);
        }
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

        @Override
        public boolean isForBatches() {
            return target.device() == device.device();
        }

        @Override
        public Piece piece() {
            return new Piece(target.address(), device.address(), device.byteSize());
        }

        @Override
        public void recordUses(long stream) {
            long _ = target.addressOn(stream);
            long _ = device.addressOn(stream);
        }
    }
}
