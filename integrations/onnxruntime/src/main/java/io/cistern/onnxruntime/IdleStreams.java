package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Streams of Cistern's, used again: one for each session, and those that stand for streams of ONNX Runtime.
/// None is ever destroyed, since a session that outlives its memory may still give work to it. So there are
/// as many as sessions were configured at once, and a fixed number of others.
///
/// **Threads.** Any.
final class IdleStreams {
    /// Streams that share a stand-in can have each other's memory at once; those on different ones wait for
    /// each other less.
    private static final int STAND_INS = 4;

    private final DeviceMemory memory;
    private final Map<Integer, Queue<CudaStream>> idle = new ConcurrentHashMap<>();
    private final Map<Integer, CudaStreamPool> standIns = new ConcurrentHashMap<>();

    private IdleStreams(DeviceMemory memory) {
        this.memory = memory;
    }

    static IdleStreams of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(IdleStreams.class, IdleStreams::new);
    }

    /// Returns the streams that stand for others. More than so many streams share some, which is right, and
    /// only makes more wait than must.
    CudaStreamPool standIns(int device) {
        return standIns.computeIfAbsent(device, made -> CudaStreamPool.open(memory, made, STAND_INS));
    }

    /// @throws io.cistern.cuda.CudaException if the driver refuses a new stream
    CudaStream take(int device) {
        CudaStream stream = ofDevice(device).poll();
        return stream != null ? stream : CudaStream.open(memory, device);
    }

    void give(CudaStream stream) {
        ofDevice(stream.device()).add(stream);
    }

    private Queue<CudaStream> ofDevice(int device) {
        return idle.computeIfAbsent(device, _ -> new ConcurrentLinkedQueue<>());
    }
}
