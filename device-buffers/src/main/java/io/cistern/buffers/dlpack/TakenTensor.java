package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.library.SharedLibrary;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Gives back a tensor that was taken from another library: makes the producer's stream wait for the work
/// that uses the tensor, or the host if there is no such stream, then calls the tensor's deleter.
final class TakenTensor implements DeviceBuffer.ForeignOwner {
    private static final Set<Long> ALL = ConcurrentHashMap.newKeySet();

    /// Made when first needed.
    private static final class Deleters {
        static final MethodHandle CALL = SharedLibrary.call(FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
    }

    private final TensorStruct struct;
    private final CudaStream stream;
    private volatile @Nullable CudaStream waiting;

    private TakenTensor(TensorStruct struct, CudaStream stream) {
        this.struct = struct;
        this.stream = stream;
    }

    /// @throws IllegalStateException if it was taken before and is not closed
    static TakenTensor of(long address, boolean versioned, CudaStream stream) {
        if (address == 0) {
            throw new IllegalArgumentException("the tensor's address is 0");
        }
        TakenTensor tensor = new TakenTensor(TensorStruct.at(address, versioned), stream);
        if (!ALL.add(address)) {
            throw new IllegalStateException("the tensor at 0x" + Long.toHexString(address)
                    + " was already taken: a tensor has one consumer, so ask its producer for another one");
        }
        return tensor;
    }

    TensorStruct struct() {
        return struct;
    }

    /// Forgets a tensor, because it was not taken or is given back.
    void forget() {
        ALL.remove(struct.memory().address());
    }

    /// Sets the stream that waits for the work that uses the tensor; null makes the host wait.
    void waitingStream(@Nullable CudaStream producer) {
        waiting = producer;
    }

    @Override
    public void release(long address, long last) {
        CudaStream end = CudaStream.ofForeign(stream.memory(), stream.device(), last);
        CudaStream producer = waiting;
        if (producer == null) {
            requireNotCaptured(last);
            end.synchronize();
        } else {
            producer.await(end);
        }
        forget(); // first: the producer may make another tensor at this address
        delete();
    }

    /// The driver's refusal to wait would end the capture.
    private void requireNotCaptured(long last) {
        if (stream.memory().moduleSupport().isCaptured(stream.device(), last)) {
            throw new IllegalStateException("stream 0x" + Long.toHexString(last)
                    + " is being captured: give the tensor back after the capture, when no graph uses it");
        }
    }

    private void delete() {
        long deleter = struct.deleter();
        if (deleter == 0) {
            return;
        }
        try {
            Deleters.CALL.invokeExact(
                    MemorySegment.ofAddress(deleter), struct.memory().address());
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
