package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.spi.StreamOrder;

/// Orders Cistern's stream, on which a block is allocated and freed, with ONNX Runtime's work on the block.
///
/// | kind | the work is on | before the use | after the use |
/// |---|---|---|---|
/// | [OwnStream] | the same stream | nothing to do | nothing to do |
/// | [StandIn] | a stream of ONNX Runtime | the work waits for the stand-in | the stand-in waits for the work |
/// | [AnyStream] | unnamed streams | the host waits | Cistern's stream waits for all streams |
///
/// A stand-in gets no work of its own, so it is never further behind than the work for which it stands.
///
/// **Threads.** Any.
sealed interface BlockOrder {
    /// Stands for the thread that allocated a block when the stream of its work may be gone.
    long NO_THREAD = -1;

    /// Returns Cistern's stream, on which the block is allocated and freed.
    CudaStream stream();

    /// Must be called between the allocation of a block and its use.
    void beforeUse();

    /// Must be called between the use of a block and its free.
    ///
    /// @param allocatingThread the identifier of the thread that allocated the block
    void afterUse(long allocatingThread);

    /// ONNX Runtime works on Cistern's stream itself.
    record OwnStream(CudaStream stream) implements BlockOrder {
        @Override
        public void beforeUse() {}

        @Override
        public void afterUse(long allocatingThread) {}
    }

    /// ONNX Runtime works on a stream of its own. It destroys that stream with the thread or the session that
    /// uses it, without notice, and a driver crashes if it is called with a destroyed stream. So only the
    /// thread that works on the stream makes calls on it, from within a call of ONNX Runtime, and none does
    /// after [SessionMemory#close]. A program that closes its session first must not free a block in
    /// between, as [SessionStreams#ONE_FOR_EACH_REQUEST] says.
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

    /// ONNX Runtime may work on any stream. The host waits for Cistern's stream, which is seldom needed because
    /// that stream only ever gets waits.
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
