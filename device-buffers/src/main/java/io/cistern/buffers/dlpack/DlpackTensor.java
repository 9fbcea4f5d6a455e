package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import java.util.EnumSet;
import java.util.Set;

/// A tensor that was taken from another library: its memory as a buffer, its layout and its flags.
///
/// Closing the tensor, or its buffer, waits until the work that uses the memory is done, and then calls the
/// deleter. The wait is needed because the producer may reuse the memory immediately, on a stream that
/// Cistern does not know. If you know that stream, [#closeBefore] avoids the wait.
///
/// **Threads.** Any thread may call any method at any time. The deleter runs on the closing thread; the deleter
/// of a Python tensor takes the interpreter's lock.
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

    /// Returns the memory, from the first element to the end of the last. Closing the buffer closes the
    /// tensor, and vice versa.
    public DeviceBuffer buffer() {
        return buffer;
    }

    /// Returns the tensor's type, shape and strides.
    public TensorLayout layout() {
        return layout;
    }

    /// Returns the flags that the producer set. A tensor in the format before DLPack 1.0 has none.
    public Set<TensorFlag> flags() {
        return EnumSet.copyOf(flags);
    }

    /// Gives the tensor back: waits for the work of the buffer's stream and, if uses on other streams were
    /// recorded, for their work, and calls the deleter. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if the buffer's stream is being captured; the tensor is still open then
    /// @throws io.cistern.cuda.CudaException if the driver refuses to wait; the tensor is still open then
    @Override
    public void close() {
        buffer.close();
    }

    /// Gives the tensor back without making the host wait: makes later work of the producer's stream wait
    /// for the work that uses the memory, and calls the deleter. Does nothing if the tensor is closed.
    ///
    /// @param producer the stream on which the tensor's producer uses the memory next
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

    /// Returns layout, flags and buffer.
    @Override
    public String toString() {
        return "DlpackTensor[" + layout + ", " + flags + ", " + buffer + "]";
    }
}
