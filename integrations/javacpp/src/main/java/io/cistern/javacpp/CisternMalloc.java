package io.cistern.javacpp;

import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.AllocationCalls;
import io.cistern.buffers.internal.AllocationCalls.Rows;
import io.cistern.buffers.internal.BindingBlocks;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.Streams;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.IntSupplier;
import java.util.function.LongConsumer;
import org.bytedeco.cuda.cudart.CUmemPoolHandle_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.cudaExtent;
import org.bytedeco.cuda.cudart.cudaPitchedPtr;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;

/// Functions that allocate from Cistern's current allocator and have the signatures of JavaCPP's CUDA
/// presets. A program only has to add imports of single functions, which take precedence over the import of
/// all functions:
///
/// ```java
/// import static org.bytedeco.cuda.global.cudart.*;
/// import static io.cistern.javacpp.CisternMalloc.cudaFree;
/// import static io.cistern.javacpp.CisternMalloc.cudaMalloc;
/// ```
///
/// **What differs.** Freeing does not synchronise. Memory is allocated and freed in the order of the legacy
/// default stream, for which most programs' streams wait. Streams created with `cudaStreamNonBlocking` do
/// not wait for it. A program that uses such streams must synchronise them before it frees, free with
/// [#cudaFreeAsync], or use [DevicePointer]s.
///
/// **Device.** Memory comes from the device whose context is current on the calling OS thread, as after
/// `cudaSetDevice`, or from device 0 if none is current. It belongs to the device's primary context, as the runtime
/// API's memory does. In a context that the program created, allocation fails with `cudaErrorDeviceUninitialized`. Any
/// thread may free memory, whatever device is current there.
///
/// **A failed allocation** sets the pointer to null, so that freeing it does nothing. A successful one sets its
/// position to 0.
///
/// **Results** are CUDA's: 0, `cudaErrorMemoryAllocation`, `cudaErrorInvalidValue` (also for an address that was not
/// allocated here, or was already freed), `cudaErrorInvalidResourceHandle` if the pool of the scope is closed, or the
/// driver's. If CUDA has no code for a failure, Cistern's exception is thrown.
///
/// **Memory that CUDA allocates.** For managed memory, and for memory from the program's own pools, the functions here
/// pass the call to the presets. The functions that free recognise such memory.
///
/// **Threads.** Any platform thread may call any method at any time. A virtual thread may change its OS
/// thread, and with it the current context, so it may only free here. To allocate, it must use
/// [DevicePointer#allocate].
@SuppressWarnings("exports") // JSpecify is not needed at run time
public final class CisternMalloc {
    private CisternMalloc() {}

    /// Accesses the address of a pointer that the program created. No public or protected member of JavaCPP
    /// sets it, only native code.
    private static final class AddressField {
        static final VarHandle ADDRESS = bind();

        private static VarHandle bind() {
            try {
                return MethodHandles.privateLookupIn(Pointer.class, MethodHandles.lookup())
                        .findVarHandle(Pointer.class, "address", long.class);
            } catch (ReflectiveOperationException closed) {
                throw new IllegalStateException(
                        "JavaCPP's pointers can't be written: on the module path, Java needs the option"
                                + " --add-opens org.bytedeco.javacpp/org.bytedeco.javacpp=io.cistern.javacpp",
                        closed);
            }
        }
    }

    /// Sets a pointer to null, and its position to 0.
    ///
    /// @return code that writes an address
    private static LongConsumer cleared(Pointer pointer) {
        pointer.position(0);
        return cleared(address -> AddressField.ADDRESS.set(pointer, address));
    }

    /// Sets to null the pointer that a pointer to pointers refers to.
    ///
    /// @return code that writes an address there
    private static LongConsumer cleared(PointerPointer<?> pointer) {
        requireWritable(pointer);
        return cleared(address -> pointer.put(0, DevicePointer.of(address, 0)));
    }

    /// Sets a result to null before memory is allocated for it, so that a failure leaves no address which the program
    /// could free.
    private static LongConsumer cleared(LongConsumer result) {
        result.accept(0);
        return result;
    }

    /// Throws if there is no memory to write a result to. Called before anything is allocated.
    private static void requireWritable(@Nullable Pointer pointer) {
        if (Pointer.isNull(pointer)) {
            throw new NullPointerException("no memory to write the result to");
        }
    }

    private static AllocationCalls calls() {
        return new AllocationCalls(DeviceMemory.system(), AllocationCalls.Api.RUNTIME);
    }

    private static int answer(Runnable call) {
        try {
            call.run();
            return cudart.cudaSuccess;
        } catch (CisternException failure) {
            return AllocationCalls.codeOf(failure);
        }
    }

    private static int allocate(LongConsumer result, long byteSize, long stream) {
        return answer(() -> result.accept(calls().allocate(byteSize, stream)));
    }

    private static int allocateRows(LongConsumer result, SizeTPointer pitch, long width, long height) {
        requireWritable(pitch);
        return answer(() -> {
            Rows rows = calls().allocateRows(width, height, Streams.LEGACY_DEFAULT);
            result.accept(rows.address());
            pitch.put(rows.pitch());
        });
    }

    private static int noted(int result, Pointer pointer) {
        return result == 0 ? BindingBlocks.noted(result, DevicePointer.address(pointer)) : result;
    }

    private static int free(@Nullable Pointer pointer, long stream, IntSupplier byPresets) {
        long address = DevicePointer.address(pointer);
        return BindingBlocks.has(address)
                ? BindingBlocks.free(address, byPresets)
                : answer(() -> calls().free(address, stream));
    }

    private static long handle(@Nullable CUstream_st stream) {
        return stream == null ? Streams.LEGACY_DEFAULT : stream.address();
    }

    /// Allocates memory in the order of the legacy default stream.
    public static int cudaMalloc(PointerPointer<?> pointer, long byteSize) {
        return allocate(cleared(pointer), byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates memory in the order of the legacy default stream.
    public static int cudaMalloc(Pointer pointer, long byteSize) {
        return allocate(cleared(pointer), byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates memory in stream order, on a stream of the current device.
    public static int cudaMallocAsync(PointerPointer<?> pointer, long byteSize, @Nullable CUstream_st stream) {
        return allocate(cleared(pointer), byteSize, handle(stream));
    }

    /// Allocates memory in stream order, on a stream of the current device.
    public static int cudaMallocAsync(Pointer pointer, long byteSize, @Nullable CUstream_st stream) {
        return allocate(cleared(pointer), byteSize, handle(stream));
    }

    /// Allocates rows that begin at multiples of the pitch. The pitch is the driver's: the width, rounded
    /// up to the device's texture alignment.
    public static int cudaMallocPitch(PointerPointer<?> pointer, SizeTPointer pitch, long width, long height) {
        return allocateRows(cleared(pointer), pitch, width, height);
    }

    /// Allocates rows that begin at multiples of the pitch. The pitch is the driver's: the width, rounded
    /// up to the device's texture alignment.
    public static int cudaMallocPitch(Pointer pointer, SizeTPointer pitch, long width, long height) {
        return allocateRows(cleared(pointer), pitch, width, height);
    }

    /// Allocates layers of rows that begin at multiples of the pitch.
    public static int cudaMalloc3D(cudaPitchedPtr pitched, cudaExtent extent) {
        requireWritable(pitched);
        pitched.ptr(DevicePointer.of(0, 0));
        return answer(() -> {
            Rows rows = calls().allocateLayers(extent.width(), extent.height(), extent.depth(), Streams.LEGACY_DEFAULT);
            pitched.ptr(DevicePointer.of(rows.address(), 0)).pitch(rows.pitch());
            pitched.xsize(extent.width()).ysize(extent.height());
        });
    }

    /// Lets CUDA allocate managed memory.
    public static int cudaMallocManaged(PointerPointer<?> pointer, long byteSize, int flags) {
        cleared(pointer);
        return noted(cudart.cudaMallocManaged(pointer, byteSize, flags), pointer.get());
    }

    /// Lets CUDA allocate managed memory.
    public static int cudaMallocManaged(Pointer pointer, long byteSize) {
        cleared(pointer);
        return noted(cudart.cudaMallocManaged(pointer, byteSize), pointer);
    }

    /// Lets CUDA allocate managed memory.
    public static int cudaMallocManaged(Pointer pointer, long byteSize, int flags) {
        cleared(pointer);
        return noted(cudart.cudaMallocManaged(pointer, byteSize, flags), pointer);
    }

    /// Lets CUDA allocate from a pool that the program created.
    public static int cudaMallocFromPoolAsync(
            PointerPointer<?> pointer, long byteSize, CUmemPoolHandle_st pool, @Nullable CUstream_st stream) {
        cleared(pointer);
        return noted(cudart.cudaMallocFromPoolAsync(pointer, byteSize, pool, stream), pointer.get());
    }

    /// Lets CUDA allocate from a pool that the program created.
    public static int cudaMallocFromPoolAsync(
            Pointer pointer, long byteSize, CUmemPoolHandle_st pool, @Nullable CUstream_st stream) {
        cleared(pointer);
        return noted(cudart.cudaMallocFromPoolAsync(pointer, byteSize, pool, stream), pointer);
    }

    /// Frees memory, whichever function here allocated it. Freeing null does nothing.
    public static int cudaFree(@Nullable Pointer pointer) {
        return free(pointer, Streams.LEGACY_DEFAULT, () -> cudart.cudaFree(pointer));
    }

    /// Frees memory in stream order. As in CUDA, managed memory is freed only by [#cudaFree].
    public static int cudaFreeAsync(@Nullable Pointer pointer, @Nullable CUstream_st stream) {
        return free(pointer, handle(stream), () -> cudart.cudaFreeAsync(pointer, stream));
    }
}
