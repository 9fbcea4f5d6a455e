package io.cistern.buffers;

import io.cistern.cuda.Copies.Piece;
import java.lang.foreign.MemorySegment;

/// One copy of a [CopyBatch].
sealed interface BatchCopy {
    /// Returns a buffer of the stream's device.
    DeviceBuffer device();

    /// Throws if the copy can't be enqueued on a stream.
    void check(long stream, CopyMode mode);

    void enqueue(long stream);

    /// A copy that the driver may make in one call with others: the device reaches both sides by an address.
    sealed interface Together extends BatchCopy {
        /// Returns the piece for the driver.
        Piece piece();

        @Override
        default void check(long stream, CopyMode mode) {
            Piece _ = piece();
        }

        /// Records that work on a stream uses both sides.
        void recordUses(long stream);
    }

    /// A copy from pinned memory.
    record PinnedToDevice(DeviceBuffer device, PinnedBuffer source) implements Together {
        @Override
        public void enqueue(long stream) {
            device.copyFrom(source, stream, CopyMode.NON_BLOCKING);
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

    /// A copy to pinned memory.
    record DeviceToPinned(PinnedBuffer target, DeviceBuffer device) implements Together {
        @Override
        public void enqueue(long stream) {
            device.copyTo(target, stream, CopyMode.NON_BLOCKING);
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

    /// A copy from buffer to buffer on one device.
    record OnDevice(DeviceBuffer target, DeviceBuffer device) implements Together {
        @Override
        public void check(long stream, CopyMode mode) {
            DeviceCopies.requireApart(target, device);
        }

        @Override
        public void enqueue(long stream) {
            DeviceCopies.on(target, device, stream);
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

    /// A copy from buffer to buffer of another device.
    record BetweenDevices(DeviceBuffer target, DeviceBuffer device) implements BatchCopy {
        @Override
        public void check(long stream, CopyMode mode) {
            long _ = target.address();
            long _ = device.address();
        }

        @Override
        public void enqueue(long stream) {
            DeviceCopies.on(target, device, stream);
        }
    }

    /// A copy from host memory, pinned or not. A batch would read unpinned memory only when the stream reaches the
    /// copy.
    record HostToDevice(DeviceBuffer device, MemorySegment source) implements BatchCopy {
        @Override
        public void check(long stream, CopyMode mode) {
            long _ = device.address();
            HostCopies.requireUsable(source);
            CaptureRules.requireCopy(device, source, stream, mode);
        }

        @Override
        public void enqueue(long stream) {
            HostCopies.toDevice(device, source, stream, CopyMode.NON_BLOCKING);
        }
    }

    /// A copy to host memory, pinned or not.
    record DeviceToHost(MemorySegment target, DeviceBuffer device) implements BatchCopy {
        @Override
        public void check(long stream, CopyMode mode) {
            long _ = device.address();
            HostCopies.requireWritable(target, mode);
            CaptureRules.requireCopy(device, target, stream, mode);
        }

        @Override
        public void enqueue(long stream) {
            HostCopies.toHost(device, target, stream, target.isNative() ? CopyMode.NON_BLOCKING : CopyMode.BLOCKING);
        }
    }
}
