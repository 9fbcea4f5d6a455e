package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.OpenOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;

/// What programs do with graphs that allocate.
final class GraphWorkloads {
    private static final long MIB = 1 << 20;

    private GraphWorkloads() {}

    static GraphMemory memory(GpuProgram program) {
        return GraphMemory.of(program.memory);
    }

    static GraphCapture begin(GpuProgram program, int stream, GraphMemory into) {
        GraphCapture capture =
                GraphCapture.begin(program.memory, 0, program.streams[stream], CaptureMode.RELAXED, into);
        program.graphs.add(into);
        return capture;
    }

    static void destroyed(GpuProgram program, long graph) {
        program.toClose.add(() -> program.gpu.graphs().destroy(0, graph));
    }

    /// Blocks that checkpoints noted are freed, restored and freed again; one checkpoint closes beside a capture.
    static void checkpoints(GpuProgram program) {
        GraphMemory own = memory(program);
        long inside;
        try (GraphCapture capture = begin(program, 0, own)) {
            inside = program.allocate(MIB, 0);
            program.allocate(3000, 0);
            destroyed(program, capture.end());
        }
        program.allocate(3000, 2);
        GraphMemory.Checkpoint first = own.checkpoint();
        program.toClose.add(first);
        program.free(inside, 0);
        own.liveBlocks();
        GraphMemory.kept(program.memory);
        own.statistics(0);
        own.reservedBytes(0);
        program.memory.allocators().forEach(each -> each.memoryStatistics(0));
        first.restore().forEach(program::restored);
        GraphMemory.Checkpoint second = own.checkpoint();
        program.toClose.add(second);
        program.free(inside, 0);
        first.close();
        second.restore().forEach(program::restored);
        try (GraphCapture capture = begin(program, 1, memory(program))) {
            program.free(inside, 1);
            second.close();
            program.freeAll(2);
            destroyed(program, capture.end());
        }
    }

    /// A graph as an object, which ends while the program goes on.
    static void launches(GpuProgram program) throws InterruptedException {
        GraphMemory own = memory(program);
        long used = program.allocate(MIB, 0);
        long kept = program.allocate(MIB, 0);
        CudaGraph graph = captured(program, own, used, kept);
        program.toClose.add(graph);
        graph.launch(program.streams[0]);
        program.gpu.faults().failOn(DriverCall.GRAPH_LAUNCH, 0, 1, CudaResult.OUT_OF_MEMORY);
        RefusalWorkloads.tolerant(() -> graph.launch(program.streams[0]));
        program.gpu.streams().synchronize(0, program.streams[0]);
        program.freeAll(0);
        graph.close();
        awaitEnd(program, own);
    }

    private static CudaGraph captured(GpuProgram program, GraphMemory own, long used, long kept) {
        try (GraphCapture capture = begin(program, 0, own)) {
            program.memory.recordUse(used, program.streams[1]);
            program.free(program.allocate(5000, 0), 0);
            program.free(program.allocate(5000, 0), 0);
            program.free(kept, 0);
            program.allocate(MIB, 0);
            return capture.endAndInstantiate();
        }
    }

    private static void awaitEnd(GpuProgram program, GraphMemory own) throws InterruptedException {
        for (int waits = 0; waits < 2000 && !own.isGone(); waits++) {
            Thread.sleep(1);
        }
        GraphMemory.collect(program.memory);
    }

    /// A block of one graph that the capture of another one frees, beside a third that uses it and comes to nothing.
    /// The
    /// first keeps it once the other is gone.
    static void passedOn(GpuProgram program) throws InterruptedException {
        Allocator direct = program.memory.open("direct");
        program.toClose.add(direct);
        GraphMemory own = memory(program);
        GraphMemory others = memory(program);
        long result;
        CudaGraph first;
        try (GraphCapture capture = begin(program, 0, own)) {
            result = program.allocate(direct, MIB, 0);
            first = capture.endAndInstantiate();
        }
        program.toClose.add(first);
        first.launch(program.streams[0]);
        CudaGraph second;
        try (GraphCapture capture = begin(program, 1, others)) {
            try (GraphCapture _ = begin(program, 2, memory(program))) {
                program.memory.recordUse(result, program.streams[2]);
                program.free(result, 1);
            }
            second = capture.endAndInstantiate();
        }
        program.toClose.add(second);
        second.launch(program.streams[1]);
        program.gpu.streams().synchronize(0, program.streams[0]);
        program.gpu.streams().synchronize(0, program.streams[1]);
        second.close();
        awaitEnd(program, others);
        first.close();
        awaitEnd(program, own);
    }

    /// Captures that come to nothing while blocks of theirs are alive.
    static void givenUp(GpuProgram program) throws InterruptedException {
        GraphMemory own = memory(program);
        try (GraphCapture _ = begin(program, 0, own)) {
            program.allocate(MIB, 0);
            program.allocate(3000, 0);
        }
        awaitEnd(program, own);
        program.freeAll(0);
    }

    /// A capture whose work goes from stream to stream, where blocks serve again if the graph orders them.
    static void forks(GpuProgram program) {
        GraphMemory own = memory(program);
        try (GraphCapture capture = begin(program, 0, own)) {
            long first = work(program, 0);
            long second = work(program, 0);
            program.memory.recordUse(second, program.streams[1]);
            follow(program, 0, 1);
            work(program, 1);
            program.free(first, 1);
            program.free(second, 0);
            follow(program, 1, 0);
            work(program, 0);
            work(program, 0);
            follow(program, 0, 2);
            program.free(work(program, 2), 2);
            follow(program, 2, 0);
            destroyed(program, capture.end());
        }
        program.endStream(1);
        program.freeAll(0);
    }

    private static long work(GpuProgram program, int stream) {
        long block = program.allocate(MIB, stream);
        program.gpu.copies().fillBytes(0, block, (byte) 1, MIB, program.streams[stream]);
        return block;
    }

    private static void follow(GpuProgram program, int before, int after) {
        long event = program.gpu.events().create(0);
        program.toClose.add(() -> program.gpu.events().destroy(0, event));
        program.gpu.events().record(0, event, program.streams[before]);
        program.gpu.streams().await(0, program.streams[after], event);
    }

    /// A capture that the program begins and ends itself, and announces.
    static void announced(GpuProgram program) {
        GraphMemory own = memory(program);
        long stream = program.streams[0];
        GraphCapture.announce(program.memory, 0, stream, own);
        program.graphs.add(own);
        program.toClose.add(() -> endAnnounced(program, stream));
        program.gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
        program.allocate(MIB, 0);
        try (GraphMemory.Hold _ = own.hold()) {
            endAnnounced(program, stream);
            program.freeAll(1);
        }
    }

    private static void endAnnounced(GpuProgram program, long stream) {
        if (program.gpu.graphs().captureStatus(0, stream) != CaptureStatus.NONE) {
            program.graph = program.gpu.graphs().endCapture(0, stream);
        }
        if (program.captures().isOn(0)) {
            GraphCapture.announceEnd(program.memory, 0, stream, program.graph);
        }
        if (program.graph != 0) {
            program.gpu.graphs().destroy(0, program.graph);
            program.graph = 0;
        }
    }

    /// A capture that asks for what others keep idle.
    static void full(GpuProgram program) {
        Allocator other = program.memory.open(OpenOptions.spec(program.allocator.spec()));
        program.toClose.add(other);
        program.free(program.allocate(other, 400 * MIB, 0), 0);
        program.gpu.streams().synchronize(0, program.streams[0]);
        GraphMemory own = memory(program);
        try (GraphCapture capture = begin(program, 1, own)) {
            try {
                program.allocate(800 * MIB, 1);
            } catch (DeviceOutOfMemoryException _) {
                // Not every allocator gives back beside a capture.
            }
            destroyed(program, capture.end());
        }
        program.freeAll(1);
        program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
    }
}
