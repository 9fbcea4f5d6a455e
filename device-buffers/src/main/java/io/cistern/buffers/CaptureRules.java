package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;
import java.lang.foreign.MemorySegment;

/// Refuses calls that a capture forbids before they reach the driver, because the driver's refusal would end the
/// capture.
final class CaptureRules {
    private CaptureRules() {}

    /// Checks a copy between host memory and a buffer.
    static void requireCopy(DeviceBuffer buffer, MemorySegment host, long stream, CopyMode mode) {
        if (!host.isNative()) {
            requireNoStaging(buffer, stream);
        }
        requireNoWait(buffer, stream, mode);
    }

    /// Checks a copy through staging memory, which another copy may use by the time of the graph's launch.
    static void requireNoStaging(DeviceBuffer buffer, long stream) {
        if (isCaptured(buffer.memory(), buffer.device(), stream)) {
            throw refused(stream, "copy before the capture, or from and to a PinnedBuffer");
        }
    }

    /// Checks that the host does not wait for a captured stream.
    static void requireNoWait(DeviceBuffer buffer, long stream, CopyMode mode) {
        if (mode == CopyMode.BLOCKING && isCaptured(buffer.memory(), buffer.device(), stream)) {
            throw refused(stream, "copy before the capture, or with CopyMode.NON_BLOCKING; the host can't wait for it");
        }
    }

    /// Checks that managed memory does not move in a capture.
    static void requireNoMove(DeviceBuffer buffer, long stream) {
        if (isCaptured(buffer.memory(), buffer.device(), stream)) {
            throw refused(stream, "prefetch or discard managed memory before the capture");
        }
    }

    /// Checks that a captured stream does not wait for one that is not captured.
    ///
    /// @param later the stream that is to wait
    static void requireOrder(DeviceMemory memory, int device, long stream, int laterDevice, long later) {
        if (isCaptured(memory, laterDevice, later) && !isCaptured(memory, device, stream)) {
            throw refused(
                    later,
                    "it can't wait for stream 0x" + Long.toHexString(stream)
                            + ", which is not: order the streams before the capture, then pass this stream to the"
                            + " copy");
        }
    }

    private static boolean isCaptured(DeviceMemory memory, int device, long stream) {
        Graphs graphs = memory.driver().graphs();
        try {
            return graphs.isSheltered(device) && graphs.captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException legacyDefaultStream) {
            return false;
        }
    }

    private static IllegalStateException refused(long stream, String instead) {
        return new IllegalStateException("stream 0x" + Long.toHexString(stream) + " is being captured: " + instead);
    }
}
