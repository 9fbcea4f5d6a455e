package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.AllocationCalls;
import io.cistern.cuda.CisternException;
import java.util.Objects;
import java.util.function.LongSupplier;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;

/// Serves calls of one of JCuda's APIs from one device memory, in JCuda's forms.
///
/// @param memory the device memory to allocate from
/// @param api the API, which decides the device and the form of results
record JCudaMalloc(DeviceMemory memory, JCudaApi api) {
    private AllocationCalls calls() {
        return new AllocationCalls(memory, api.calls);
    }

    /// Allocates on the device of the current context.
    int allocate(Pointer pointer, long byteSize, long stream) {
        return allocateTo(pointer, () -> calls().allocate(byteSize, stream));
    }

    /// Allocates on a device, whatever context is current.
    int allocateOn(int device, Pointer pointer, long byteSize, long stream) {
        return allocateTo(pointer, () -> calls().allocateOn(device, byteSize, stream));
    }

    private int allocateTo(Pointer pointer, LongSupplier allocate) {
        PointerParts.clear(pointer);
        return answer(() -> PointerParts.set(pointer, allocate.getAsLong()));
    }

    /// Allocates rows that begin at multiples of the pitch, and writes the pitch to `pitch[0]`.
    int allocateRows(Pointer pointer, long[] pitch, long width, long rows, long stream) {
        PointerParts.clear(pointer);
        Objects.checkIndex(0, Objects.requireNonNull(pitch, "pitch is null").length);
        return answer(() -> {
            AllocationCalls.Rows made = calls().allocateRows(width, rows, stream);
            pitch[0] = made.pitch();
            PointerParts.set(pointer, made.address());
        });
    }

    /// Allocates layers of rows that begin at multiples of the pitch.
    int allocateLayers(cudaPitchedPtr pitched, cudaExtent extent, long stream) {
        Objects.requireNonNull(pitched, "pitched is null");
        Objects.requireNonNull(extent, "extent is null");
        pitched.ptr = new Pointer();
        return answer(() -> {
            AllocationCalls.Rows made = calls().allocateLayers(extent.width, extent.height, extent.depth, stream);
            pitched.ptr = HandleField.set(new Pointer(), made.address());
            pitched.pitch = made.pitch();
            pitched.xsize = extent.width;
            pitched.ysize = extent.height;
        });
    }

    /// Frees memory of this device memory. Freeing a null pointer does nothing.
    int free(Pointer pointer, long stream) {
        return answer(() -> calls().free(JCudaPointers.address(pointer), stream));
    }

    /// Makes a device's primary context, to which its memory belongs, current on the calling OS thread.
    int enterContext(CUcontext context, int device) {
        HandleField.require(context, "context");
        return answer(() -> HandleField.set(context, calls().enterContext(device)));
    }

    private int answer(Runnable call) {
        try {
            call.run();
            return 0;
        } catch (CisternException failure) {
            return api.give(AllocationCalls.codeOf(failure), failure);
        }
    }
}
