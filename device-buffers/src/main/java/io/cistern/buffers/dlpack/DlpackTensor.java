package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import java.util.EnumSet;
import java.util.Set;

/// A tensor that was taken from another library: its memory as a buffer, and what it is.
///
/// Closing it, or its buffer, waits until the work that uses the memory is done and calls the deleter: its
/// producer may use the memory again at once, on a stream that is not known here. Where it is known,
/// [#closeBefore] waits for nothing.
///
/// **Threads.** Any thread may call any method at any time. The deleter runs on the thread that closes; of a
/// tensor of Python's it takes the interpreter's lock.
public final class DlpackTensor implements AutoCloseable {
    private final DeviceBuffer buffer;
    private final TensorLayout layout;
    private final Set<TensorFlag> flags;
    private final TakenTensor taken;

    private DlpackTensor(TakenTensor taken, TensorLayout layout, CudaStream stream) {
        this.taken = taken;
        this.layout = layout;
        this.flags = EnumSet.noneOf(TensorFlag.class);
        for (TensorFlag flag : TensorFlag.values()) {
            if ((taken.struct().flags() & flag.bit()) != 0) {
                flags.add(flag);
            }
        }
        this.buffer = DeviceBuffer.ofBorrowed(
                stream.memory(),
                layout.byteSize() == 0 ? 0 : ReceivedTensor.address(taken.struct()),
                layout.byteSize(),
                stream.device(),
                stream.handle(),
                taken);
    }

    static DlpackTensor take(long address, boolean versioned, CudaStream stream) {
        TakenTensor taken = TakenTensor.of(address, versioned, stream);
        try {
            TensorLayout layout = ReceivedTensor.check(taken.struct(), stream);
            return new DlpackTensor(taken, layout, stream);
        } catch (Throwable failure) {
            taken.forget();
            throw failure;
        }
    }

    /// Returns the memory, from the first element to the end of the last. It ends with the tensor, and the tensor
    /// with it.
    public DeviceBuffer buffer() {
        return buffer;
    }

    /// Returns type, shape and strides.
    public TensorLayout layout() {
        return layout;
    }

    /// Returns what its producer says of it; nothing of the form before DLPack 1.0.
    public Set<TensorFlag> flags() {
        return EnumSet.copyOf(flags);
    }

    /// Gives the tensor back: waits until the work of the buffer's stream, and of others that were recorded, is
    /// done, and calls the deleter. Closing twice does nothing.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses to wait, as while the stream is captured; the
    ///     tensor is still open then
    @Override
    public void close() {
        buffer.close();
    }

    /// Gives the tensor back without waiting: makes what the producer's stream is given from now on wait for the
    /// work that uses the memory, and calls the deleter. Does nothing if the tensor is closed.
    ///
    /// @param producer the stream on which its producer uses the memory next
    /// @throws IllegalStateException if the stream is closed; the tensor is still open then
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the tensor is still open then
    public void closeBefore(CudaStream producer) {
        taken.waitingStream(producer);
        try {
            buffer.close();
        } finally {
            taken.waitingStream(null);
        }
    }

    /// Layout, flags and buffer.
    @Override
    public String toString() {
        return "DlpackTensor[" + layout + ", " + flags + ", " + buffer + "]";
    }
}
