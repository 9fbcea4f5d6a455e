package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;

/// Hands buffers to other libraries in the process as DLPack tensors, and takes tensors from them. Nothing
/// is copied.
///
/// ```java
/// long tensor = Dlpack.share(buffer, TensorLayout.compact(TensorType.FLOAT32, rows, columns), consumerStream);
/// try (DlpackTensor theirs = Dlpack.take(address, stream)) { launch(theirs.buffer().address()); }
/// ```
///
/// Tensors are passed as the address of a `DLManagedTensorVersioned`; before DLPack 1.0, of a
/// `DLManagedTensor`. Python wraps the address in a capsule named `dltensor_versioned` or `dltensor`. This
/// class does not handle capsules: the code that takes a tensor out of a capsule must rename the capsule,
/// and the code that makes a capsule must call the deleter if nobody takes the tensor.
///
/// **Streams.** The consumer of a tensor passes its producer the stream on which it will use the tensor,
/// and the producer makes that stream wait for the work that fills the tensor. The numbers are those of
/// Python's `__dlpack__(stream=…)`: 1 (or `None`) is the legacy default stream, 2 the calling thread's
/// default stream, -1 requests no ordering, and any other number is a `CUstream`. The standard forbids 0,
/// so [#share] refuses it.
///
/// **Lifetime.** A shared tensor holds the memory until its deleter is called. The consumer must call the
/// deleter exactly once, on any thread, attached to the JVM or not. The buffer that the tensor was made
/// from may be closed at any time: the memory is freed when the buffer, its retained slices and all its
/// tensors have released it. The JVM must outlive all consumers.
///
/// **Threads.** Any thread may call any method at any time.
public final class Dlpack {
    /// Stands for the stream of a consumer that requests no ordering. When the consumer's tensor is
    /// deleted, the memory is freed after all work that is enqueued on the device by then.
    public static final long NO_STREAM = -1;

    private Dlpack() {}

    /// Makes a tensor of DLPack 1.0 that shares a buffer's memory.
    ///
    /// @param buffer the buffer at whose first byte the tensor begins; it may be longer than the tensor
    /// @param stream the consumer's stream. Its later work runs after all work enqueued so far on the
    ///     buffer's stream; if the buffer's stream has ended, after all work enqueued so far on the device.
    ///     The memory is reused only after the work that is enqueued on the consumer's stream when the
    ///     deleter is called, so the consumer must order its other streams with this one
    /// @return the address of a `DLManagedTensorVersioned`, whose deleter must be called
    /// @throws IllegalArgumentException if the buffer is too short or not aligned, or the stream is 0 or below
    ///     -1
    /// @throws IllegalStateException if the buffer is closed; or if the consumer's stream is being captured
    ///     and the buffer's stream is not
    /// @throws UnsupportedOperationException if the buffer does not own its memory: it is a view, an
    ///     arena's, or borrowed
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws io.cistern.cuda.CudaException if the driver refuses to order the streams
    public static long share(DeviceBuffer buffer, TensorLayout layout, long stream, TensorFlag... flags) {
        long bits = 0;
        for (TensorFlag flag : flags) {
            bits |= flag.bit();
        }
        return share(buffer, layout, stream, bits, true);
    }

    /// Makes a tensor in the format that was used before DLPack 1.0 and has no flags, for consumers that do
    /// not request a version.
    ///
    /// @return the address of a `DLManagedTensor`, whose deleter must be called
    /// @throws RuntimeException as [#share] does
    public static long shareUnversioned(DeviceBuffer buffer, TensorLayout layout, long stream) {
        return share(buffer, layout, stream, 0, false);
    }

    private static long share(DeviceBuffer buffer, TensorLayout layout, long stream, long flags, boolean versioned) {
        require(buffer, layout, stream);
        SharedTensors.endOwed();
        DeviceBuffer held = SharedTensor.hold(buffer, layout.byteSize());
        try {
            SharedTensor tensor = SharedTensor.of(held, layout, stream, flags, versioned);
            SharedTensors.add(tensor);
            return tensor.address();
        } catch (Throwable failure) {
            held.close();
            throw failure;
        }
    }

    private static void require(DeviceBuffer buffer, TensorLayout layout, long stream) {
        if (stream == 0 || stream < NO_STREAM) {
            throw new IllegalArgumentException("stream " + stream
                    + " is not one of DLPack's: 1 is the legacy default stream, 2 the per-thread default stream, -1"
                    + " requests no ordering");
        }
        if (layout.byteSize() > buffer.byteSize()) {
            throw new IllegalArgumentException(
                    layout + " needs " + layout.byteSize() + " bytes, but " + buffer + " has fewer");
        }
        if (buffer.address() % layout.type().byteAlignment() != 0) {
            throw new IllegalArgumentException(buffer + " at 0x" + Long.toHexString(buffer.address())
                    + " is not aligned for elements of " + layout.type());
        }
    }

    /// Takes a tensor of DLPack 1.0 from another library. Closing the result calls the tensor's deleter. If
    /// this method throws, it has not taken the tensor, and does not call the deleter.
    ///
    /// @param tensor the address of a `DLManagedTensorVersioned`
    /// @param stream the stream that was passed to the tensor's producer, and on which the tensor is used
    ///     first
    /// @throws IllegalArgumentException if the address is 0
    /// @throws io.cistern.errors.SharingException if the tensor is of another major version, on another
    ///     device, or malformed
    /// @throws IllegalStateException if the tensor was taken before and is not closed, or the stream is
    ///     closed
    public static DlpackTensor take(long tensor, CudaStream stream) {
        return DlpackTensor.take(tensor, true, stream);
    }

    /// Takes a tensor in the format that was used before DLPack 1.0: see [#take].
    ///
    /// @param tensor the address of a `DLManagedTensor`
    /// @throws IllegalArgumentException if the address is 0
    /// @throws io.cistern.errors.SharingException if the tensor is on another device, or malformed
    /// @throws IllegalStateException if the tensor was taken before and is not closed, or the stream is
    ///     closed
    public static DlpackTensor takeUnversioned(long tensor, CudaStream stream) {
        return DlpackTensor.take(tensor, false, stream);
    }

    /// Returns the number that names a stream in `__dlpack__(stream=…)`, to be passed to a producer.
    public static long streamNumber(CudaStream stream) {
        return stream.handle() == 0 ? 1 : stream.handle();
    }
}
