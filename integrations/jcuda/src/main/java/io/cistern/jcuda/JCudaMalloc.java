package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUresult;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;

/// Serves calls of one of JCuda's APIs from one device memory.
///
/// @param memory the device memory to allocate from
/// @param api the API, which decides the device and the form of results
record JCudaMalloc(DeviceMemory memory, JCudaApi api) {
    private static final int SUCCESS = 0;
    private static final int INVALID_VALUE = CUresult.CUDA_ERROR_INVALID_VALUE; // cudaErrorInvalidValue is the same

    /// The texture alignment of all GPUs so far, in bytes.
    private static final long USUAL_ALIGNMENT = 512;

    /// Allocates on the device of the current context.
    int allocate(Pointer pointer, long byteSize, long stream) {
        requirePlatformThread();
        return answer(() -> set(pointer, byteSize, api.currentDevice(memory), stream));
    }

    /// Allocates on a device, whatever context is current.
    int allocateOn(int device, Pointer pointer, long byteSize, long stream) {
        return answer(() -> set(pointer, byteSize, device, stream));
    }

    private void set(Pointer pointer, long byteSize, int device, long stream) {
        requireBytes(byteSize);
        HandleField.set(pointer, memory.allocate(byteSize, device, stream));
    }

    /// Allocates rows that begin at multiples of the pitch, and writes the pitch to `pitch[0]`.
    int allocateRows(Pointer pointer, long[] pitch, long width, long rows, long stream) {
        requirePlatformThread();
        return answer(() -> setRows(pointer, pitch, width, rows, stream));
    }

    /// Allocates layers of rows that begin at multiples of the pitch.
    int allocateLayers(cudaPitchedPtr pitched, cudaExtent extent, long stream) {
        requirePlatformThread();
        return answer(() -> {
            requireBytes(extent.height);
            requireBytes(extent.depth);
            Pointer pointer = new Pointer();
            long[] pitch = new long[1];
            setRows(pointer, pitch, extent.width, product(extent.height, extent.depth), stream);
            pitched.ptr = pointer;
            pitched.pitch = pitch[0];
            pitched.xsize = extent.width;
            pitched.ysize = extent.height;
        });
    }

    private void setRows(Pointer pointer, long[] pitch, long width, long rows, long stream) {
        requireBytes(width);
        requireBytes(rows);
        int device = api.currentDevice(memory);
        long stride = rows == 0 ? 0 : roundedUp(width, pitchAlignment(device));
        long byteSize = product(stride, rows);
        pitch[0] = stride; // before allocating: if the array is empty, no memory is lost
        HandleField.set(pointer, memory.allocate(byteSize, device, stream));
    }

    private void requireBytes(long byteSize) {
        if (byteSize < api.minBytes()) {
            throw new RefusedCall(INVALID_VALUE, "too few bytes or rows: " + byteSize);
        }
    }

    /// Returns the alignment of rows in bytes. The driver's own pitch is a multiple of it, so that textures can
    /// be bound to the rows.
    private long pitchAlignment(int device) {
        int alignment = memory.driver().devices().attribute(device, DeviceAttribute.TEXTURE_ALIGNMENT);
        return alignment > 0 ? alignment : USUAL_ALIGNMENT;
    }

    private static long roundedUp(long bytes, long alignment) {
        return bytes > Long.MAX_VALUE - alignment ? Long.MAX_VALUE : Math.ceilDiv(bytes, alignment) * alignment;
    }

    /// Returns the product, or the greatest long if it overflows: no allocator has so many bytes.
    private static long product(long bytes, long rows) {
        return Math.multiplyHigh(bytes, rows) != 0 || bytes * rows < 0 ? Long.MAX_VALUE : bytes * rows;
    }

    /// Frees memory of this device memory. Freeing a null pointer does nothing.
    int free(Pointer pointer, long stream) {
        return answer(() -> memory.free(JCudaPointers.address(pointer), stream));
    }

    /// Makes a device's primary context, to which its memory belongs, current on the calling OS thread.
    int enterContext(CUcontext context, int device) {
        requirePlatformThread();
        return answer(() -> {
            memory.driver().devices().enterContext(device);
            HandleField.set(context, memory.driver().devices().primaryContext(device));
        });
    }

    private int answer(Runnable call) {
        try {
            call.run();
            return SUCCESS;
        } catch (CisternException failure) {
            return api.give(codeOf(failure), failure);
        }
    }

    /// Returns the CUDA code of a failure. For these codes, the two APIs have the same numbers.
    ///
    /// @throws CisternException the failure itself, if it has no code
    private static int codeOf(CisternException failure) {
        return switch (failure) {
            case CudaException ofDriver -> ofDriver.code();
            case RefusedCall refused -> refused.code();
            case DeviceOutOfMemoryException _ -> CUresult.CUDA_ERROR_OUT_OF_MEMORY;
            case UnknownAddressException _ -> INVALID_VALUE;
            default -> throw failure;
        };
    }

    private static void requirePlatformThread() {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread changes its OS thread, and with it the current context:"
                    + " call this from a platform thread, or name the device");
        }
    }
}
