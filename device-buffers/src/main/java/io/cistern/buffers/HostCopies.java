package io.cistern.buffers;

import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import java.lang.foreign.MemorySegment;

/// Copies between host memory and a buffer.
///
/// The driver takes native memory as it is. The GPU can't reach the heap: arrays go through pinned memory in
/// pieces ([StagedCopy]), or to the device through the driver's own memory ([CopyOptions#copyArraysDirectly]).
final class HostCopies {
    /// Larger arrays are always staged, which is about as fast for them. So no safepoint waits for a larger copy.
    private static final long DIRECT_BELOW_BYTES = 8 << 20;

    private HostCopies() {}

    static void toDevice(DeviceBuffer target, MemorySegment source, long stream, CopyMode mode) {
        long byteSize = source.byteSize();
        CopySizes.requireFits("source", byteSize, "buffer", target.byteSize());
        requireUsable(source);
        CaptureRules.requireCopy(target, source, stream, mode);
        CudaDriver driver = target.memory().driver();
        long address = target.addressOn(stream);
        if (source.isNative()) {
            BufferSupport.of(target.memory()).pageableCopies.sees(target.device(), source, mode);
            driver.copies().toDevice(target.device(), address, source, byteSize, stream);
        } else {
            if (byteSize >= DIRECT_BELOW_BYTES
                    || !BufferSupport.of(target.memory()).copyOptions.copiesArraysDirectly()) {
                stagedToDevice(target, address, source, stream, mode);
                return;
            }
            driver.copies().arrayToDevice(target.device(), address, source, stream);
        }
        if (mode == CopyMode.BLOCKING) {
            driver.streams().synchronize(target.device(), stream);
        }
    }

    private static void stagedToDevice(
            DeviceBuffer target, long address, MemorySegment source, long stream, CopyMode mode) {
        try (StagedCopy copy = new StagedCopy(target.memory(), target.device(), stream, source.byteSize())) {
            copy.toDevice(address, source, mode);
        }
    }

    static void toHost(DeviceBuffer source, MemorySegment target, long stream, CopyMode mode) {
        long byteSize = source.byteSize();
        CopySizes.requireFits("buffer", byteSize, "target", target.byteSize());
        requireWritable(target, mode);
        CaptureRules.requireCopy(source, target, stream, mode);
        Copies copies = source.memory().driver().copies();
        long address = source.addressOn(stream);
        if (target.isNative()) {
            BufferSupport.of(source.memory()).pageableCopies.sees(source.device(), target, mode);
            copies.toHost(source.device(), target, address, byteSize, stream);
            if (mode == CopyMode.BLOCKING) {
                source.memory().driver().streams().synchronize(source.device(), stream);
            }
        } else {
            try (StagedCopy copy = new StagedCopy(source.memory(), source.device(), stream, byteSize)) {
                copy.toHost(target, address);
            }
        }
    }

    static void requireWritable(MemorySegment target, CopyMode mode) {
        requireUsable(target);
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("the memory to copy to is read-only: " + target);
        }
        if (!target.isNative() && mode == CopyMode.NON_BLOCKING) {
            throw new IllegalArgumentException("a copy to the heap must be blocking, since the garbage collector may"
                    + " move the array: copy to a PinnedBuffer, or make the copy blocking");
        }
    }

    static void requireUsable(MemorySegment memory) {
        if (!memory.scope().isAlive()) {
            throw new IllegalStateException("host memory of a closed arena: " + memory);
        }
        if (!memory.isAccessibleBy(Thread.currentThread())) {
            throw new WrongThreadException("host memory of another thread's confined arena: " + memory);
        }
    }
}
