package io.cistern.buffers.internal;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import java.util.stream.IntStream;

/// Implements CUDA's allocation functions on a device memory, for modules that offer them under the names of a CUDA
/// binding. These modules turn failures into CUDA's codes by [#codeOf].
///
/// **Threads.** The device is that of the context which is current on the OS thread. A virtual thread may change
/// its OS thread. So methods that use or set the current context throw an [IllegalStateException] there;
/// [#allocateOn], [#free] and [#isPrimary] do not.
///
/// @param memory the device memory to allocate from
/// @param api the API whose calls are served
public record AllocationCalls(DeviceMemory memory, Api api) {
    /// CUDA's two APIs.
    public enum Api {
        /// Refuses to allocate 0 bytes, and to allocate without a current context.
        DRIVER,

        /// Uses device 0 if no context is current.
        RUNTIME
    }

    /// Rows that begin at multiples of the pitch.
    ///
    /// @param pitch bytes from the beginning of a row to the beginning of the next
    public record Rows(long address, long pitch) {}

    private static final int NO_CONTEXT = -1;

    /// The texture alignment of all GPUs so far, in bytes.
    private static final long USUAL_ALIGNMENT = 512;

    /// Returns CUDA's code of a failure. For these codes, the two APIs have the same numbers.
    ///
    /// @throws CisternException the failure itself, if it has no code
    public static int codeOf(CisternException failure) {
        return switch (failure) {
            case CudaException ofDriver -> ofDriver.code();
            case RefusedCall refused -> refused.result.code();
            case DeviceOutOfMemoryException _ -> CudaResult.OUT_OF_MEMORY.code();
            case UnknownAddressException _ -> CudaResult.INVALID_VALUE.code();
            default -> throw failure;
        };
    }

    /// Allocates on the device of the current context.
    public long allocate(long byteSize, long stream) {
        requirePlatformThread();
        return allocateOn(currentDevice(), byteSize, stream);
    }

    /// Allocates on a device, whatever context is current.
    public long allocateOn(int device, long byteSize, long stream) {
        requireBytes(byteSize);
        return allocated(byteSize, device, stream);
    }

    /// A closed pool is refused as CUDA refuses a destroyed handle.
    private long allocated(long byteSize, int device, long stream) {
        try {
            return memory.allocate(byteSize, device, stream);
        } catch (IllegalStateException closed) {
            throw new RefusedCall(CudaResult.INVALID_HANDLE, closed);
        }
    }

    /// Allocates rows on the device of the current context. Textures can be bound to them.
    public Rows allocateRows(long width, long rows, long stream) {
        requirePlatformThread();
        requireBytes(width);
        requireBytes(rows);
        int device = currentDevice();
        long pitch = rows == 0 ? 0 : roundedUp(width, pitchAlignment(device));
        return new Rows(allocated(product(pitch, rows), device, stream), pitch);
    }

    /// Allocates layers of rows on the device of the current context.
    public Rows allocateLayers(long width, long height, long depth, long stream) {
        requireBytes(height);
        requireBytes(depth);
        return allocateRows(width, product(height, depth), stream);
    }

    /// Frees memory of this device memory. Freeing address 0 does nothing.
    public void free(long address, long stream) {
        memory.free(address, stream);
    }

    /// Makes a device's primary context, to which its memory belongs, current on the calling OS thread.
    ///
    /// @return the context
    public long enterContext(int device) {
        requirePlatformThread();
        Devices devices = memory.driver().devices();
        devices.enterContext(device);
        return devices.primaryContext(device);
    }

    /// Returns whether a context is the primary one of a device.
    public boolean isPrimary(long context) {
        Devices devices = memory.driver().devices();
        return IntStream.range(0, devices.count())
                .anyMatch(device -> devices.isUsed(device) && devices.primaryContext(device) == context);
    }

    private int currentDevice() {
        int device = memory.driver().devices().currentDevice();
        if (device != NO_CONTEXT) {
            return device;
        }
        if (api == Api.DRIVER) {
            throw new RefusedCall(CudaResult.INVALID_CONTEXT, "no context is current on this thread");
        }
        return 0;
    }

    private void requireBytes(long byteSize) {
        if (byteSize < (api == Api.DRIVER ? 1 : 0)) {
            throw new RefusedCall(CudaResult.INVALID_VALUE, "too few bytes or rows: " + byteSize);
        }
    }

    /// Returns the alignment of rows in bytes. The driver's own pitch is a multiple of it.
    private long pitchAlignment(int device) {
        int alignment = memory.driver().devices().attribute(device, DeviceAttribute.TEXTURE_ALIGNMENT);
        return alignment > 0 ? alignment : USUAL_ALIGNMENT;
    }

    private static long roundedUp(long bytes, long alignment) {
        return bytes > Long.MAX_VALUE - alignment ? Long.MAX_VALUE : Math.ceilDiv(bytes, alignment) * alignment;
    }

    /// Returns the product, or the greatest long if it overflows: no allocator has that many bytes.
    private static long product(long bytes, long rows) {
        return Math.multiplyHigh(bytes, rows) != 0 || bytes * rows < 0 ? Long.MAX_VALUE : bytes * rows;
    }

    private static void requirePlatformThread() {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread changes its OS thread, and with it the current context:"
                    + " call this from a platform thread, or name the device");
        }
    }

    /// Refuses a call as CUDA would refuse it.
    private static final class RefusedCall extends CisternException {
        private static final long serialVersionUID = 1;

        private final CudaResult result;

        RefusedCall(CudaResult result, String why) {
            super(why);
            this.result = result;
        }

        RefusedCall(CudaResult result, IllegalStateException why) {
            super(why.toString(), why);
            this.result = result;
        }
    }
}
