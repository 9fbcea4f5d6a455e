package io.cistern.cli.faults;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.CallCosts;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A program that uses what Cistern has, so that nearly every driver call is made, and goes on whatever is refused.
/// It knows what is live, and what the refusals were.
final class FaultyProgram implements AutoCloseable {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 96 * MIB;
    private static final long[] SIZES = {4 << 10, MIB, 6 * MIB, 20 * MIB};
    private static final int MOST_BLOCKS = 24;
    private static final byte NOT_WRITTEN = 0;

    final SimulatedGpu gpu;
    private final String spec;
    private final long[] streams = new long[3];
    private final Map<Long, Block> live = new LinkedHashMap<>();
    private final Map<String, Integer> refusals = new TreeMap<>();
    private final List<Throwable> untyped = new ArrayList<>();
    private final List<CudaGraph> graphs = new ArrayList<>();
    private final Map<String, Long> heldBefore;
    private final long freeBefore;
    private @Nullable DeviceMemory memory;
    private byte contents;

    /// Called once a call has failed on demand, with the next step.
    @Nullable
    Runnable afterFailure;

    private record Block(long byteSize, byte contents) {}

    /// @param slow a call that takes a second of virtual time, or null
    FaultyProgram(String spec, @Nullable DriverCall slow) {
        this.spec = spec;
        CallCosts costs = CallCosts.h200();
        Map<DriverCall, CallCosts.Cost> calls = new EnumMap<>(DriverCall.class);
        calls.putAll(costs.calls());
        if (slow != null) {
            calls.put(slow, new CallCosts.Cost(1_000_000_000, 0));
        }
        gpu = SimulatedGpu.builder()
                .devices(2)
                .capacityBytes(CAPACITY)
                .costs(new CallCosts(
                        calls,
                        costs.fillBytesPerNano(),
                        costs.copyBytesPerNano(),
                        costs.hostLinkBytesPerNano(),
                        costs.peerLinkBytesPerNano(),
                        costs.deviceLatencyNanos()))
                .build();
        heldBefore = gpu.heldObjects();
        freeBefore = gpu.memory().freeBytes(DEVICE);
        for (int i = 0; i < streams.length; i++) {
            streams[i] = gpu.streams().create(DEVICE);
        }
    }

    /// How often the program was refused, by the name of the exception.
    Map<String, Integer> refusals() {
        return refusals;
    }

    /// What it got that it could not have expected.
    List<Throwable> untyped() {
        return untyped;
    }

    void run() {
        tried(this::open);
        if (memory == null) {
            return;
        }
        tried(this::blocks);
        tried(this::endAStream);
        tried(this::runOut);
        tried(() -> trim(TrimMode.WITHOUT_WAITING));
        tried(this::pool);
        tried(this::graph);
        tried(this::buffers);
        tried(this::peers);
        tried(() -> trim(TrimMode.SYNCHRONIZE));
        tried(() -> memory().memorySummary(DEVICE));
    }

    private boolean open() {
        DeviceMemory opened =
                DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
        memory = opened;
        opened.setCurrent(spec);
        opened.listeners().onCompaction(WorkPause.ofOneThread());
        return true;
    }

    private DeviceMemory memory() {
        if (memory == null) {
            open();
        }
        return Objects.requireNonNull(memory);
    }

    private boolean blocks() {
        for (long byteSize : SIZES) {
            long address = allocate(byteSize, streams[0]);
            if (address != 0) {
                work(streams[1]);
                tried(() -> recordUse(address, streams[1]));
                free(address, streams[0]);
            }
            long handedOver = allocate(byteSize, streams[0]);
            gpu.streams().synchronize(DEVICE, streams[0]);
            free(handedOver, streams[1]);
        }
        for (long byteSize : SIZES) {
            allocate(byteSize, streams[1]);
        }
        return true;
    }

    private boolean recordUse(long address, long stream) {
        memory().recordUse(address, stream);
        return true;
    }

    private void work(long stream) {
        gpu.keepBusy(DEVICE, stream, 5_000_000);
    }

    private boolean endAStream() {
        long address = allocate(6 * MIB, streams[2]);
        work(streams[2]);
        free(address, streams[2]);
        memory().streamClosing(DEVICE, streams[2]);
        long next = gpu.streams().create(DEVICE);
        gpu.streams().destroy(DEVICE, streams[2]);
        streams[2] = next;
        return true;
    }

    private boolean runOut() {
        List<Long> blocks = new ArrayList<>();
        for (long block = -1; block != 0 && blocks.size() < MOST_BLOCKS; ) {
            block = allocate(7 * MIB, streams[0]);
            blocks.add(block);
        }
        blocks.forEach(block -> free(block, streams[0]));
        return true;
    }

    private boolean trim(TrimMode mode) {
        memory().trim(DEVICE, 0, mode);
        return true;
    }

    private boolean pool() {
        try (MemoryPool pool = memory().pools().open(spec);
                Scope _ = pool.enter()) {
            long address = allocate(4 * MIB, streams[0]);
            tried(() -> pool.sleep(SleepMode.KEEP));
            tried(() -> {
                pool.wake();
                return true;
            });
            for (int i = 0; i < 3 && pool.isAsleep(); i++) {
                gpu.faults().clear();
                tried(() -> {
                    pool.wake();
                    return true;
                });
            }
            free(address, streams[0]);
        }
        return true;
    }

    private boolean graph() {
        try (GraphCapture capture = GraphCapture.begin(memory(), DEVICE, streams[0], CaptureMode.RELAXED)) {
            long address = memory().allocate(MIB, DEVICE, streams[0]);
            gpu.copies().fillBytes(DEVICE, address, (byte) 1, MIB, streams[0]);
            memory().free(address, streams[0]);
            CudaGraph graph = capture.endAndInstantiate();
            graphs.add(graph);
            graph.launch(streams[0]);
            graph.close();
        }
        return true;
    }

    private boolean buffers() {
        try (CudaStream stream = CudaStream.open(memory(), DEVICE);
                DeviceBuffer buffer = DeviceBuffer.allocate(MIB, stream)) {
            buffer.copyFrom(MemorySegment.ofArray(new byte[(int) MIB]));
            PinnedMemory.of(memory()).trim();
        }
        return true;
    }

    private boolean peers() {
        try (MemoryPool pool = memory().pools().open(spec)) {
            pool.openTo(0, 1);
            long address = pool.allocate(MIB, DEVICE, streams[0]);
            memory().free(address, streams[0]);
        } catch (UnsupportedOperationException cannot) {
            return false;
        }
        return true;
    }

    /// Returns 0 where it is refused.
    private long allocate(long byteSize, long stream) {
        Long address = tried(() -> memory().allocate(byteSize, DEVICE, stream));
        if (address == null) {
            return 0;
        }
        byte content = ++contents;
        boolean isWritten = tried(() -> {
                    gpu.copies().fillBytes(DEVICE, address, content, byteSize, stream);
                    return true;
                })
                != null;
        live.put(address, new Block(byteSize, isWritten ? content : NOT_WRITTEN));
        return address;
    }

    /// A free that fails may be made again if the block is alive.
    private void free(long address, long stream) {
        if (live.remove(address) == null) {
            return;
        }
        tried(() -> {
            memory().free(address, stream);
            return true;
        });
    }

    private <T> @Nullable T tried(Supplier<T> action) {
        try {
            return action.get();
        } catch (DeviceOutOfMemoryException | CudaException refusal) {
            refusals.merge(refusal.getClass().getSimpleName(), 1, Integer::sum);
        } catch (MemoryAsleepException | UnsupportedOperationException cannot) {
            return null;
        } catch (CisternException typed) {
            refusals.merge(typed.getClass().getSimpleName(), 1, Integer::sum);
        } catch (RuntimeException | Error failure) {
            untyped.add(failure);
        } finally {
            Runnable then = afterFailure;
            if (then != null && gpu.faults().failedCalls() > 0) {
                afterFailure = null;
                then.run();
            }
        }
        return null;
    }

    /// Looks whether memory is whole and can be used, now that the driver works again.
    ///
    /// @return what is wrong
    List<String> useAgain() {
        List<String> wrong = new ArrayList<>();
        gpu.faults().clear();
        if (gpu.graphs().captureStatus(DEVICE, streams[0]) != CaptureStatus.NONE) {
            tried(() -> gpu.graphs().endCapture(DEVICE, streams[0]));
        }
        gpu.devices().synchronize(DEVICE);
        live.forEach((address, block) -> {
            if (!isWhole(address, block)) {
                wrong.add("contents are spoilt");
            }
        });
        for (long byteSize : SIZES) {
            for (long stream : streams) {
                long address = memory().allocate(byteSize, DEVICE, stream);
                gpu.copies().fillBytes(DEVICE, address, (byte) 0, byteSize, stream);
                memory().free(address, stream);
            }
        }
        return wrong;
    }

    private boolean isWhole(long address, Block block) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(1);
            gpu.copies().toHost(DEVICE, host, address + block.byteSize - 1, 1, streams[0]);
            gpu.devices().synchronize(DEVICE);
            return block.contents == NOT_WRITTEN || host.get(ValueLayout.JAVA_BYTE, 0) == block.contents;
        }
    }

    /// Frees all and closes.
    ///
    /// @param isLost whether the context is lost; then what the driver has is gone with it
    /// @return what is wrong
    List<String> end(boolean isLost) throws InterruptedException {
        List<String> wrong = new ArrayList<>();
        if (memory == null) {
            return wrong;
        }
        DeviceMemory open = memory();
        if (!isLost) {
            gpu.devices().synchronize(DEVICE);
        }
        graphs.forEach(CudaGraph::close); // again, after a refusal
        open.liveBlocks().forEach(block -> open.free(block.address(), streams[0]));
        if (!open.liveBlocks().isEmpty()) {
            wrong.add("blocks are left");
        }
        for (int i = 0; i < 2000 && !GraphMemory.kept(open).isEmpty(); i++) {
            Thread.sleep(1);
            GraphMemory.collect(open);
        }
        open.close();
        if (!open.allocators().isEmpty()) {
            wrong.add("allocators are open");
        }
        if (!isLost) {
            for (long stream : streams) {
                gpu.streams().destroy(DEVICE, stream);
            }
            gpu.devices().synchronize(DEVICE);
            for (int i = 0; i < 2000 && gpu.memory().freeBytes(DEVICE) != freeBefore; i++) {
                Thread.sleep(1);
            }
            long lost = freeBefore - gpu.memory().freeBytes(DEVICE);
            if (lost != 0) {
                wrong.add(lost + " bytes are lost");
            }
            if (gpu.heldObjects().getOrDefault("pinned", 0L) != 0) {
                wrong.add("pinned memory is left: " + gpu.heldObjects() + ", before " + heldBefore);
            }
            if (!gpu.misuses().isEmpty()) {
                wrong.add("misused: " + gpu.misuses().getFirst());
            }
        }
        return wrong;
    }

    @Override
    public void close() {
        gpu.close();
    }
}
