package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Recycles Cistern's streams: one for each session, and the stand-ins for streams of ONNX Runtime. It never
/// destroys a stream, because a session that outlives its memory may still give it work. So there are as many
/// streams as sessions were ever configured at once, and a fixed number of stand-ins.
///
/// **Threads.** Any.
final class IdleStreams {
    /// The number of stand-ins. ONNX Runtime's streams with the same stand-in can reuse each other's memory at
    /// once; with different stand-ins they wait for each other less.
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

    /// Returns the stand-ins. If there are more streams than stand-ins, some share one: still correct, but some
    /// streams wait longer than they must.
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
