package io.cistern.buffers;

import java.lang.foreign.MemorySegment;

/// Copies rows between host memory and a buffer: pinned memory directly, other memory packed into pinned
/// memory.
final class HostRows {
    private HostRows() {}

    static void toDevice(DeviceRows target, MemorySegment source, long sourcePitch, long stream, CopyMode mode) {
        HostCopies.requireUsable(source);
        CaptureRules.requireNoStaging(target.buffer(), stream);
        long rowBytes = target.rowBytes();
        try (PinnedBuffer packed = packed(target)) {
            MemorySegment bytes = packed.segment();
            for (long row = 0; row < target.rows(); row++) {
                MemorySegment.copy(source, row * sourcePitch, bytes, row * rowBytes, rowBytes);
            }
            toDevice(target, packed, rowBytes, stream, mode);
        }
    }

    static void toDevice(DeviceRows target, PinnedBuffer source, long sourcePitch, long stream, CopyMode mode) {
        CaptureRules.requireNoWait(target.buffer(), stream, mode);
        long address = target.addressOn(stream);
        long from = source.segment().address();
        source.recordUse(target.buffer().device(), stream);
        target.copyShape(address, target.pitch(), from, sourcePitch, stream);
        waitIf(mode, target.buffer(), stream);
    }

    static void toHost(DeviceRows source, MemorySegment target, long targetPitch, long stream) {
        HostCopies.requireWritable(target, CopyMode.BLOCKING);
        CaptureRules.requireNoStaging(source.buffer(), stream);
        long rowBytes = source.rowBytes();
        try (PinnedBuffer packed = packed(source)) {
            toHost(source, packed, rowBytes, stream, CopyMode.BLOCKING);
            MemorySegment bytes = packed.segment();
            for (long row = 0; row < source.rows(); row++) {
                MemorySegment.copy(bytes, row * rowBytes, target, row * targetPitch, rowBytes);
            }
        }
    }

    static void toHost(DeviceRows source, PinnedBuffer target, long targetPitch, long stream, CopyMode mode) {
        CaptureRules.requireNoWait(source.buffer(), stream, mode);
        long address = source.addressOn(stream);
        long to = target.segment().address();
        target.recordUse(source.buffer().device(), stream);
        source.copyShape(to, targetPitch, address, source.pitch(), stream);
        waitIf(mode, source.buffer(), stream);
    }

    private static PinnedBuffer packed(DeviceRows rows) {
        return PinnedMemory.of(rows.buffer().memory()).allocate(Math.multiplyExact(rows.rowBytes(), rows.rows()));
    }

    private static void waitIf(CopyMode mode, DeviceBuffer buffer, long stream) {
        if (mode == CopyMode.BLOCKING) {
            buffer.memory().driver().streams().synchronize(buffer.device(), stream);
        }
    }
}
