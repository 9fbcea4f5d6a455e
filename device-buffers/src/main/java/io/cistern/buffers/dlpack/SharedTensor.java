package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.internal.LastStreams;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A buffer that another library holds as a tensor. The struct lives in an arena that the garbage collector
/// frees. So ending it can't fail, and a second deletion finds no tensor instead of reading freed memory.
final class SharedTensor {
    private final DeviceBuffer held;
    private final boolean streamKnown;
    private final MemorySegment struct;

    /// The next in a list of [SharedTensors].
    @Nullable
    SharedTensor next;

    private SharedTensor(DeviceBuffer held, boolean streamKnown, TensorStruct struct) {
        this.held = held;
        this.streamKnown = streamKnown;
        this.struct = struct.memory();
    }

    /// Makes a tensor that holds a buffer's memory.
    ///
    /// @param held the holder of the memory, which the tensor closes
    /// @param stream the consumer's stream, or [Dlpack#NO_STREAM]
    static SharedTensor of(DeviceBuffer held, TensorLayout layout, long stream, long flags, boolean versioned) {
        held.memory().moduleSupport().attachment(SharedTensors.Owed.class, _ -> new SharedTensors.Owed());
        TensorStruct struct = struct(held, layout, versioned);
        struct.setManager(SharedTensors.deleter(), flags);
        boolean streamKnown = stream != Dlpack.NO_STREAM;
        if (streamKnown) {
            order(held, stream);
        }
        return new SharedTensor(held, streamKnown, struct);
    }

    /// Makes the consumer's stream wait for the buffer's.
    private static void order(DeviceBuffer held, long stream) {
        DeviceMemory memory = held.memory();
        LastStreams streams = LastStreams.of(memory);
        streams.opened(held.device(), stream);
        if (stream == held.stream()) {
            return;
        }
        requireOrder(memory.moduleSupport(), held, stream);
        long last = streams.streamFor(held.device(), held.stream());
        CudaStream.ofForeign(memory, held.device(), stream).await(CudaStream.ofForeign(memory, held.device(), last));
        held.recordUse(stream);
    }

    /// The driver's refusal to order them would end the capture.
    private static void requireOrder(ModuleSupport support, DeviceBuffer held, long stream) {
        if (support.isCaptured(held.device(), stream) && !support.isCaptured(held.device(), held.stream())) {
            throw new IllegalStateException("stream 0x" + Long.toHexString(stream)
                    + " is being captured: it can't wait for stream 0x" + Long.toHexString(held.stream())
                    + ", which is not; share the buffer before the capture");
        }
    }

    private static TensorStruct struct(DeviceBuffer held, TensorLayout layout, boolean versioned) {
        Arena arena = Arena.ofAuto();
        TensorStruct struct = new TensorStruct(arena.allocate(TensorStruct.byteSize(versioned), 16), versioned);
        long address = layout.byteSize() == 0 ? 0 : held.address();
        TensorDevice kind = TensorDevice.of(held.memory().driver().memory(), held.device(), address);
        struct.setLong(TensorStruct.DATA, address);
        struct.setInt(TensorStruct.DEVICE_TYPE, kind.code());
        struct.setInt(TensorStruct.DEVICE_ID, kind == TensorDevice.CUDA_HOST ? 0 : held.device());
        struct.setInt(TensorStruct.RANK, layout.shape().size());
        struct.setType(layout.type());
        struct.setLong(TensorStruct.SHAPE, array(arena, layout.shape()));
        struct.setLong(TensorStruct.STRIDES, array(arena, layout.strides()));
        return struct;
    }

    /// Allocates in the given arena, whose memory lives as long as any of its segments is reachable.
    private static long array(Arena arena, List<Long> values) {
        long[] numbers = values.stream().mapToLong(Long::longValue).toArray();
        return numbers.length == 0
                ? 0
                : arena.allocateFrom(ValueLayout.JAVA_LONG, numbers).address();
    }

    /// Returns the address of the struct.
    long address() {
        return struct.address();
    }

    /// Frees the memory after the work of the consumer's stream, or of all streams if the consumer named none.
    void end() {
        if (streamKnown) {
            held.close();
            return;
        }
        StreamOrder order = held.memory().moduleSupport().streams();
        long fence = order.recordAll(held.device());
        try {
            held.closeAfter(fence);
        } finally {
            order.release(held.device(), fence);
        }
    }

    /// Returns whether the memory is still held.
    boolean isAlive() {
        return !held.isClosed();
    }

    /// Returns a holder of the buffer's memory for the tensor. Any thread may delete the tensor, so the holder
    /// must not end on a thread's own stream; the legacy default stream waits for all of those.
    static DeviceBuffer hold(DeviceBuffer buffer, long byteSize) {
        DeviceBuffer held = buffer.retainedSlice(0, byteSize);
        if (held.stream() != Streams.PER_THREAD_DEFAULT) {
            return held;
        }
        try {
            return held.moveToStream(Streams.LEGACY_DEFAULT);
        } catch (Throwable failure) {
            held.close();
            throw failure;
        }
    }
}
