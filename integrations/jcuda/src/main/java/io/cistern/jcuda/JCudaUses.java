package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.hazards.StreamHazards;
import java.util.function.IntSupplier;
import jcuda.Pointer;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import org.jspecify.annotations.Nullable;

/// Reports to the check for races JCuda's calls on the device of the current context. Work that a stream captures is
/// left out: it does not run yet.
///
/// @param hazards the check, or null if nothing is to be told
/// @param device the device of the current context; negative without the check
record JCudaUses(@Nullable StreamHazards hazards, @Nullable CudaDriver driver, int device) {
    /// Reports nothing.
    static final JCudaUses NONE = new JCudaUses(null, null, -1);

    /// An argument that a kernel only reads.
    static final class ReadOnly extends Pointer {
        ReadOnly(Pointer pointer) {
            super(pointer);
        }
    }

    /// Those of a device memory; without the check, or without a current context, [#NONE].
    static JCudaUses of(DeviceMemory memory) {
        return StreamHazards.of(memory)
                .map(hazards -> new JCudaUses(hazards, memory.driver(), currentDevice(memory)))
                .filter(uses -> uses.device >= 0)
                .orElse(NONE);
    }

    private static int currentDevice(DeviceMemory memory) {
        try {
            return memory.driver().devices().currentDevice();
        } catch (CudaException notPrimary) {
            return -1; // its streams can't use Cistern's memory
        }
    }

    private static long handle(@Nullable CUstream stream) {
        return stream == null ? 0 : JCudaStreams.handle(stream);
    }

    private static long handle(@Nullable CUevent event) {
        return event == null ? 0 : JCudaStreams.handle(event);
    }

    /// Returns the check, if it is to be notified of a stream's work.
    private @Nullable StreamHazards listening(@Nullable CUstream stream) {
        if (hazards == null || driver == null) {
            return null;
        }
        try {
            CaptureStatus status = driver.graphs().captureStatus(device, handle(stream));
            return status == CaptureStatus.NONE ? hazards : null;
        } catch (CudaException unknown) {
            return null; // the call itself will fail
        }
    }

    void copies(@Nullable CUstream stream, @Nullable Pointer source, @Nullable Pointer target, long byteSize) {
        StreamHazards told = listening(stream);
        uses(told, stream, source, byteSize, false);
        uses(told, stream, target, byteSize, true);
    }

    void writes(@Nullable CUstream stream, @Nullable Pointer target, long byteSize) {
        uses(listening(stream), stream, target, byteSize, true);
    }

    private void uses(
            @Nullable StreamHazards told,
            @Nullable CUstream stream,
            @Nullable Pointer pointer,
            long byteSize,
            boolean isWritten) {
        if (told == null || pointer == null || !PointerParts.hasAddress(pointer)) {
            return;
        }
        long address = JCudaPointers.address(pointer);
        if (address != 0 && byteSize > 0) { // otherwise the call does nothing, or fails
            told.used(device, handle(stream), address, byteSize, isWritten);
        }
    }

    /// Reports rows, which begin at multiples of the pitch.
    void writesRows(@Nullable CUstream stream, @Nullable Pointer target, long pitch, long width, long rows) {
        StreamHazards told = listening(stream);
        if (told == null || target == null) {
            return;
        }
        long address = JCudaPointers.address(target);
        if (address != 0 && pitch > 0 && width > 0 && rows > 0) {
            told.usedRows(device, handle(stream), address, pitch, width, rows, true);
        }
    }

    /// Reports a kernel, which writes what its arguments point to unless they are [ReadOnly]. How much it uses is not
    /// known, so the first byte counts.
    void launches(@Nullable CUstream stream, @Nullable Pointer parameters) {
        StreamHazards told = listening(stream);
        if (told != null) {
            KernelArguments.forEachPointer(
                    parameters, pointer -> uses(told, stream, pointer, 1, !(pointer instanceof ReadOnly)));
        }
    }

    /// Makes a call that records an event.
    int records(@Nullable CUevent event, @Nullable CUstream stream, IntSupplier call) {
        StreamHazards told = listening(stream);
        return until(told == null ? null : () -> told.recorded(device, handle(event), handle(stream)), call);
    }

    /// Makes a call that lets a stream wait.
    int awaits(@Nullable CUstream stream, @Nullable CUevent event, IntSupplier call) {
        StreamHazards told = listening(stream);
        return until(told == null ? null : () -> told.awaited(device, handle(stream), handle(event)), call);
    }

    /// Makes a copy to the device for which the host waits, if it succeeds. From an array or a buffer of Java, it waits
    /// only until the bytes are staged.
    int untilCopied(@Nullable Pointer source, IntSupplier call) {
        return hazards != null && source != null && PointerParts.hasAddress(source)
                ? untilStream(null, call)
                : call.getAsInt();
    }

    /// Makes a call after which a stream has finished, if it succeeds.
    int untilStream(@Nullable CUstream stream, IntSupplier call) {
        return until(hazards == null ? null : hazards.waitForStream(device, handle(stream)), call);
    }

    /// Makes a call after which an event has passed, if it succeeds.
    int untilEvent(@Nullable CUevent event, IntSupplier call) {
        return until(hazards == null ? null : hazards.waitForEvent(handle(event)), call);
    }

    /// Makes a call after which the device is idle, if it succeeds.
    int untilDevice(IntSupplier call) {
        return until(hazards == null ? null : hazards.waitForDevice(device), call);
    }

    private static int until(@Nullable Runnable after, IntSupplier call) {
        int result = call.getAsInt();
        if (result == 0 && after != null) {
            after.run();
        }
        return result;
    }

    /// Reports that an event is about to be destroyed: afterwards its handle may be another's.
    void destroys(@Nullable CUevent event) {
        if (hazards != null) {
            hazards.eventDestroyed(handle(event));
        }
    }

    /// Reports that a stream is about to be destroyed: afterwards its handle may be another's.
    void destroys(@Nullable CUstream stream) {
        if (hazards != null && handle(stream) > Streams.PER_THREAD_DEFAULT) {
            hazards.streamDestroyed(device, handle(stream));
        }
    }
}
