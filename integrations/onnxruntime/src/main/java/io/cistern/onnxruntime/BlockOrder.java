package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.spi.StreamOrder;

/// The order between the stream that a block is allocated and freed on, which is Cistern's, and the work of
/// ONNX Runtime on the block.
///
/// | kind | the work is on | before the use | after the use |
/// |---|---|---|---|
/// | [OwnStream] | the same stream | nothing to do | nothing to do |
/// | [StandIn] | a stream of ONNX Runtime | it waits for the stand-in | the stand-in waits for it |
/// | [AnyStream] | streams that are not told | the host waits | the stand-in waits for all |
///
/// A stand-in is given no work, so it is at most as far behind as the work that it stands for.
///
/// **Threads.** Any.
sealed interface BlockOrder {
    /// In place of the thread that allocated a block, where the stream of its work may be gone.
    long NO_THREAD = -1;

    /// Returns the stream that the block is allocated and freed on.
    CudaStream stream();

    /// To be called between the allocation of a block and its use.
    void beforeUse();

    /// To be called between the use of a block and its free.
    ///
    /// @param allocatingThread the identifier of the thread that asked for the block
    void afterUse(long allocatingThread);

    /// The work is on the stream itself.
    record OwnStream(CudaStream stream) implements BlockOrder {
        @Override
        public void beforeUse() {}

        @Override
        public void afterUse(long allocatingThread) {}
    }

    /// The work is on a stream of ONNX Runtime, which destroys it with the thread or the session that uses
    /// it, and says so to nobody. A driver crashes when it is asked for something on a stream that was
    /// destroyed. So nothing is asked but by the thread that works on it, from a call of ONNX Runtime.
    record StandIn(CudaStream stream, StreamOrder order, long handle) implements BlockOrder {
        @Override
        public void beforeUse() {
            int device = stream.device();
            long fence = order.record(device, stream.handle());
            try {
                order.await(device, handle, fence);
            } finally {
                order.release(device, fence);
            }
        }

        @Override
        public void afterUse(long allocatingThread) {
            int device = stream.device();
            boolean exists = Thread.currentThread().threadId() == allocatingThread;
            awaitThere(stream, order, exists ? order.record(device, handle) : order.recordAll(device));
        }
    }

    /// The work may be on any stream. The host waits, which is seldom needed: the stream is given nothing but
    /// waits.
    record AnyStream(CudaStream stream, StreamOrder order) implements BlockOrder {
        @Override
        public void beforeUse() {
            if (!stream.isIdle()) {
                stream.synchronize();
            }
        }

        @Override
        public void afterUse(long allocatingThread) {
            awaitThere(stream, order, order.recordAll(stream.device()));
        }
    }

    private static void awaitThere(CudaStream stream, StreamOrder order, long fence) {
        try {
            order.await(stream.device(), stream.handle(), fence);
        } finally {
            order.release(stream.device(), fence);
        }
    }
}
