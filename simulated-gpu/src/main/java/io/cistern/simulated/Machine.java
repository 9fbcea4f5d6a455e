package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.MemoryBudget;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.space.AddressSpace;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamEngine;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/// A whole simulated machine: devices, streams, memory and the clock, under one lock.
///
/// Each driver call goes through [#call]. It counts the call, charges its time, and runs the work that is due
/// by then. It fails if a fault was requested, the context is poisoned or a capture forbids the call;
/// otherwise it runs the call's body. A thread that waits for work moves the clock itself. If a gate (a
/// latch, a host function) holds the work, the thread releases the lock briefly and checks again.
final class Machine implements AutoCloseable {
    /// Calls that need no context, and so still work when it is poisoned (as on an H200 after an illegal
    /// address).
    private static final Set<DriverCall> WITHOUT_CONTEXT =
            EnumSet.range(DriverCall.INIT, DriverCall.CONTEXT_GET_CURRENT);
    /// Calls that query a device and create no context.
    private static final Set<DriverCall> OF_DEVICES = EnumSet.range(DriverCall.INIT, DriverCall.DEVICE_GET_ATTRIBUTE);

    /// The real time between two checks of a closed gate by a waiting thread.
    private static final long POLL_MICROS = 50;

    static {
        WITHOUT_CONTEXT.add(DriverCall.POINTER_GET_ATTRIBUTE);
        WITHOUT_CONTEXT.add(DriverCall.DEVICE_CAN_ACCESS_PEER);
        WITHOUT_CONTEXT.addAll(EnumSet.range(DriverCall.MEM_POOL_CREATE, DriverCall.MEM_GET_ALLOCATION_GRANULARITY));
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    final StreamEngine engine = new StreamEngine();
    final AddressSpace space = new AddressSpace();
    private final StreamClock hostClock = new StreamClock();
    /// The work that the host has synchronised with. Pools take it into account, but not the results of
    /// queries (as seen on an H200).
    final StreamClock synchronisedClock = new StreamClock();
    final HazardTracker hazards = new HazardTracker(space, hostClock);
    final CallCounts counts = new CallCounts();
    final Faults faults = new Faults();
    final Kernels kernels = new Kernels();
    final CallCosts costs;
    private final List<DeviceState> devices = new ArrayList<>();
    final HandleTable handles = new HandleTable(hazards);
    final StreamTable streams = new StreamTable(engine, handles, hazards);
    final CaptureTable captures = new CaptureTable();
    private final List<GraphMemory> graphMemories = new ArrayList<>();
    final HostCallbacks callbacks = new HostCallbacks(this);
    private boolean closed;

    Machine(int deviceCount, long totalBytes, long contextBytes, CallCosts costs) {
        this.costs = costs;
        for (int ordinal = 0; ordinal < deviceCount; ordinal++) {
            long pool = handles.next();
            MemoryBudget budget = new MemoryBudget(totalBytes, contextBytes);
            DeviceState device = new DeviceState(ordinal, budget, space, streams.addLegacy(), pool);
            handles.put(pool, device.defaultPool);
            devices.add(device);
            graphMemories.add(new GraphMemory(this, ordinal));
        }
    }

    <T> T call(DriverCall call, int device, Supplier<T> body) {
        return call(call, device, () -> "device=" + device, body);
    }

    void run(DriverCall call, int device, Runnable body) {
        run(call, device, () -> "device=" + device, body);
    }

    /// Makes a driver call about one object or address.
    <T> T call(DriverCall call, int device, String name, long value, Supplier<T> body) {
        return call(call, device, () -> "device=" + device + ", " + name + "=0x" + Long.toHexString(value), body);
    }

    void run(DriverCall call, int device, String name, long value, Runnable body) {
        boolean _ = call(call, device, name, value, () -> {
            body.run();
            return true;
        });
    }

    <T> T callOnStream(DriverCall call, int device, long stream, Function<StreamQueue, T> body) {
        return call(call, device, "stream", stream, () -> body.apply(streams.find(call, device, stream)));
    }

    void runOnStream(DriverCall call, int device, long stream, Consumer<StreamQueue> body) {
        run(call, device, "stream", stream, () -> body.accept(streams.find(call, device, stream)));
    }

    /// Makes a driver call on a device.
    <T> T call(DriverCall call, int device, Supplier<String> arguments, Supplier<T> body) {
        counts.count(call);
        lock.lock();
        try {
            failIf(closed, CudaResult.DEINITIALIZED);
            requireDevice(device);
            engine.advance(costs.nanos(call));
            engine.runUntilNow();
            Faults.Fault fault = faults.next(call, device);
            if (fault != null && fault.isLoss()) {
                devices.get(device).poison(fault.result());
            }
            if (fault != null && fault.result() != CudaResult.SUCCESS) {
                throw new DriverFailure(fault.result());
            }
            if (!OF_DEVICES.contains(call)) {
                devices.get(device).isUsed = true;
            }
            CudaResult sticky = devices.get(device).stickyError;
            if (sticky != null && !WITHOUT_CONTEXT.contains(call)) {
                throw new DriverFailure(sticky);
            }
            captures.check(call, device);
            return body.get();
        } catch (DriverFailure failure) {
            throw new CudaException(call, failure.result().code(), failure.describe(arguments.get()));
        } finally {
            lock.unlock();
        }
    }

    void run(DriverCall call, int device, Supplier<String> arguments, Runnable body) {
        call(call, device, arguments, () -> {
            body.run();
            return true;
        });
    }

    void requireDevice(int device) {
        failIf(device < 0 || device >= devices.size(), CudaResult.INVALID_DEVICE);
    }

    /// Charges the part of a call's cost that depends on its size.
    void spend(DriverCall call, long byteSize) {
        engine.advance(costs.nanosForBytes(call, byteSize));
    }

    /// Reads or changes state outside driver calls.
    <T> T locked(Supplier<T> body) {
        lock.lock();
        try {
            return body.get();
        } finally {
            lock.unlock();
        }
    }

    void locked(Runnable body) {
        lock.lock();
        try {
            body.run();
        } finally {
            lock.unlock();
        }
    }

    void gateOpened() {
        locked(changed::signalAll);
    }

    /// Waits until the condition holds, and moves the clock to the work that makes it hold. Fails with the
    /// device's sticky error if it has one then.
    void waitUntil(int device, BooleanSupplier condition) {
        boolean interrupted = false;
        while (!condition.getAsBoolean() && !closed) {
            if (engine.step()) {
                continue;
            }
            try {
                boolean signalled = changed.await(POLL_MICROS, TimeUnit.MICROSECONDS);
                assert signalled || !signalled;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        failIf(closed, CudaResult.DEINITIALIZED);
        CudaResult sticky = devices.get(device).stickyError;
        if (sticky != null) {
            throw new DriverFailure(sticky);
        }
    }

    void drain(int device) {
        waitUntil(device, () -> engine.active().stream().noneMatch(stream -> stream.device() == device));
    }

    /// Records that the host has seen all of `seen` as done.
    void hostSaw(StreamClock seen) {
        hostClock.include(seen);
    }

    void hostSaw(StreamQueue stream) {
        hostSaw(through(stream));
    }

    /// Records that the host has waited for all of `seen`.
    void hostSynchronised(StreamClock seen) {
        hostClock.include(seen);
        synchronisedClock.include(seen);
    }

    private static StreamClock through(StreamQueue stream) {
        StreamClock seen = stream.clock().copy();
        seen.include(stream, stream.completed());
        return seen;
    }

    void hostSynchronisedAll(int device) {
        Set<Long> gone = streams.finished(device, stream -> hostSynchronised(through(stream)));
        hostClock.forget(gone);
        synchronisedClock.forget(gone);
    }

    /// Waits for all work issued to a stream, and for the streams that the legacy default stream stands for.
    void awaitAll(StreamQueue stream) {
        List<StreamQueue> all = streams.group(stream);
        long[] last = all.stream().mapToLong(StreamQueue::issued).toArray();
        waitUntil(stream.device(), () -> {
            for (int i = 0; i < last.length; i++) {
                if (all.get(i).completed() < last[i]) {
                    return false;
                }
            }
            return true;
        });
        all.forEach(each -> hostSynchronised(through(each)));
    }

    /// Lets pools react to a synchronisation of the host.
    void poolsSynchronised(int device) {
        for (PoolSimulation pool : List.copyOf(devices.get(device).pools)) {
            engine.advance(pool.synchronised(synchronisedClock) * costs.poolPageReleaseNanos());
            forgetIfGone(pool);
        }
    }

    /// Adds a pool of host memory to all devices, so that it sees the synchronisations of each.
    void poolOfAllDevices(PoolSimulation pool) {
        devices.forEach(device -> device.pools.add(pool));
    }

    void forgetIfGone(PoolSimulation pool) {
        if (pool.gone()) {
            devices.forEach(device -> device.pools.remove(pool));
            devices.get(pool.device()).returnAddresses(pool);
        }
    }

    /// Launches work on a stream: now, or, if the stream is captured, whenever the graph runs.
    ///
    /// @param kind the kind of graph node that the work becomes in a capture, such as `kernel` or `copy`
    void give(StreamQueue stream, String kind, GraphNode.Issue work) {
        captures.refuseImplicit(stream, devices.get(stream.device()).legacy);
        Capture capture = captures.of(stream);
        if (capture == null) {
            work.to(stream);
        } else {
            capture.add(stream, kind, work);
        }
    }

    void use(DriverCall call, StreamQueue stream, long address, long byteSize) {
        streams.order(stream);
        hazards.use(call, stream, address, byteSize);
    }

    /// Checks the range of work on a stream, which may also lie in memory of the graph into which the stream is
    /// captured.
    void checkRange(DriverCall call, StreamQueue stream, long address, long byteSize, boolean write) {
        if (captures.of(stream) == null || !graphMemory(stream.device()).covers(address, byteSize)) {
            checkRange(call, stream.device(), address, byteSize, write);
        }
    }

    /// Checks the range of a fill or copy at the time of the call, as the driver does: it must lie inside one
    /// live allocation, or inside mappings that the device may use.
    void checkRange(DriverCall call, int device, long address, long byteSize, boolean write) {
        Allocation allocation = space.allocationAt(address);
        if (allocation != null && address + byteSize > allocation.end()) {
            reject(call, device, address, Misuse.Kind.UNMAPPED_ACCESS, "goes past the end of its allocation");
        }
        for (long at = address; at < address + byteSize; ) {
            Mapping mapping = space.mappingAt(at);
            if (mapping == null) {
                reject(call, device, at, Misuse.Kind.UNMAPPED_ACCESS, "nothing is mapped there");
            } else if (allocation == null && mapping.kind() != Mapping.Kind.VIRTUAL) {
                reject(call, device, at, Misuse.Kind.USE_AFTER_FREE, "no longer allocated");
            } else if (!mapping.allows(device, write)) {
                reject(
                        call,
                        device,
                        at,
                        Misuse.Kind.ACCESS_WITHOUT_RIGHTS,
                        "device " + device + " may not access it that way");
            } else {
                at = mapping.end();
            }
        }
    }

    private void reject(DriverCall call, int device, long address, Misuse.Kind kind, String why) {
        hazards.report(kind, call, device, address, "0x" + Long.toHexString(address) + ": " + why);
        throw new DriverFailure(CudaResult.INVALID_VALUE);
    }

    /// Returns an effect on memory that runs for a device. An illegal address poisons the device's context, and
    /// in a poisoned context the effect does nothing.
    Runnable effect(int device, Runnable effect) {
        return () -> {
            DeviceState state = devices.get(device);
            if (state.stickyError != null) {
                return;
            }
            try {
                effect.run();
            } catch (DriverFailure failure) {
                state.poison(failure.result());
            } catch (RuntimeException brokenKernel) {
                hazards.report(Misuse.Kind.BROKEN_KERNEL, DriverCall.LAUNCH_KERNEL, device, 0, brokenKernel.toString());
                state.poison(CudaResult.LAUNCH_FAILED);
            }
        };
    }

    DeviceView view(DriverCall call, int device) {
        return new DeviceView(this, call, device);
    }

    /// Returns the device that a block lies on; `otherwise` for host memory.
    static int homeOf(PhysicalBlock block, int otherwise) {
        return block.location().type() == MemoryLocation.Type.DEVICE
                ? block.location().id()
                : otherwise;
    }

    Map<String, Long> heldObjects() {
        Map<String, Long> held = handles.counts();
        held.put("pinned", space.allocations(Mapping.Kind.HOST));
        held.put("reservations", (long) space.reservations().size());
        held.values().removeIf(count -> count == 0);
        return held;
    }

    DeviceState device(int ordinal) {
        return devices.get(ordinal);
    }

    int deviceCount() {
        return devices.size();
    }

    GraphMemory graphMemory(int device) {
        return graphMemories.get(device);
    }

    @Override
    public void close() {
        locked(() -> {
            closed = true;
            changed.signalAll();
        });
        callbacks.close();
    }
}
