package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.nccl.Collective.Kind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;

/// One collective, or one send with its receive, from the first rank's call until the last stream has its
/// result.
///
/// Each rank enqueues this on its stream:
///
/// ```
/// copy its input to the host → event → wait for the result → copy the result from the host → event
/// ```
///
/// A rank that receives nothing does not wait. The last rank to call makes its stream wait for all first events;
/// then the host computes all results and releases all streams. Guarded by the [SimulatedClique].
final class SimulatedExchange {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    /// One rank's part of the exchange.
    private final class Part {
        final int rank;
        final int device;
        final Collective call;
        final MemorySegment given;
        final MemorySegment result;
        final MemorySegment flag;
        final long gave;
        final long done;

        Part(int rank, Collective call) {
            this.rank = rank;
            this.device = devices[rank];
            this.call = call;
            given = host(SimulatedExchange.this.given(rank, call));
            result = host(SimulatedExchange.this.received(rank, call));
            flag = host(Integer.BYTES);
            FLAG.setVolatile(flag, 0L, 0);
            gave = driver.events().create(device);
            done = driver.events().create(device);
        }

        private MemorySegment host(long byteSize) {
            return staging.take(device, byteSize);
        }

        void enqueue(long stream, MemoryKernels latch) {
            long gives = SimulatedExchange.this.given(rank, call);
            driver.copies().toHost(device, given, call.send(), gives, stream);
            driver.events().record(device, gave, stream);
            long receives = SimulatedExchange.this.received(rank, call);
            if (receives > 0) {
                latch.latch(flag.address(), stream);
                driver.copies().toDevice(device, call.receive(), result, receives, stream);
            }
            driver.events().record(device, done, stream);
        }

        void free() {
            List.of(given, result, flag).forEach(staging::giveBack);
            boolean _ = DeadContext.isDoneAtLast(() -> driver.events().destroy(device, gave));
            boolean _ = DeadContext.isDoneAtLast(() -> driver.events().destroy(device, done));
        }
    }

    private final SimulatedStaging staging;
    private final CudaDriver driver;
    private final int[] devices;
    private final int members;
    private final List<Part> parts = new ArrayList<>();
    private boolean isAbandoned;

    SimulatedExchange(SimulatedStaging staging, int[] devices, int members) {
        this.staging = staging;
        this.driver = staging.driver();
        this.devices = devices;
        this.members = members;
    }

    /// Returns whether the next rank to join is the last one.
    boolean expectsOne() {
        return parts.size() == members - 1;
    }

    /// @throws NcclException if this rank's call does not match those of others
    void join(int rank, Collective call, long stream, MemoryKernels latch) {
        if (!parts.isEmpty()) {
            requireFitting(rank, call, parts.getFirst());
        }
        Part part = new Part(rank, call);
        parts.add(part);
        if (parts.size() < members) {
            part.enqueue(stream, latch);
            return;
        }
        finish(part, stream);
    }

    /// Makes the last rank's stream wait for the input of the others; its host function computes for all.
    private void finish(Part last, long stream) {
        long gives = given(last.rank, last.call);
        driver.copies().toHost(last.device, last.given, last.call.send(), gives, stream);
        for (Part other : parts) {
            if (other != last) {
                driver.streams().await(last.device, stream, other.gave);
            }
        }
        driver.streams().launchHostFunction(last.device, stream, () -> {
            try {
                compute();
            } finally {
                letGo();
            }
        });
        long receives = received(last.rank, last.call);
        driver.copies().toDevice(last.device, last.call.receive(), last.result, receives, stream);
        driver.events().record(last.device, last.done, stream);
    }

    private void requireFitting(int rank, Collective call, Part first) {
        Collective other = first.call;
        boolean pair = call.kind() == Kind.SEND || call.kind() == Kind.RECEIVE;
        boolean fits = call.count() == other.count()
                && call.type() == other.type()
                && (pair || (call.kind() == other.kind() && call.op() == other.op() && call.peer() == other.peer()));
        if (!fits) {
            throw SimulatedNccl.refused(
                    "nccl " + call.kind(),
                    NcclResult.INVALID_USAGE,
                    call.toString(),
                    "rank " + rank + " does not match rank " + first.rank + ", which called " + other);
        }
    }

    /// Returns the number of bytes that a rank sends.
    private long given(int rank, Collective call) {
        long bytes = call.count() * call.type().byteSize();
        return switch (call.kind()) {
            case ALL_REDUCE, REDUCE, ALL_GATHER, SEND -> bytes;
            case BROADCAST -> rank == call.peer() ? bytes : 0;
            case REDUCE_SCATTER, ALL_TO_ALL -> bytes * members;
            case RECEIVE -> 0;
        };
    }

    /// Returns the number of bytes that a rank receives.
    private long received(int rank, Collective call) {
        long bytes = call.count() * call.type().byteSize();
        return switch (call.kind()) {
            case ALL_REDUCE, BROADCAST, REDUCE_SCATTER, RECEIVE -> bytes;
            case REDUCE -> rank == call.peer() ? bytes : 0;
            case ALL_GATHER, ALL_TO_ALL -> bytes * members;
            case SEND -> 0;
        };
    }

    private void compute() {
        Collective call = parts.getFirst().call;
        long bytes = call.count() * call.type().byteSize();
        for (Part to : parts) {
            switch (call.kind()) {
                case ALL_REDUCE -> reduce(to, 0, call);
                case REDUCE -> {
                    if (to.rank == call.peer()) {
                        reduce(to, 0, call);
                    }
                }
                case REDUCE_SCATTER -> reduce(to, to.rank * bytes, call);
                case BROADCAST -> copy(part(call.peer()), 0, to, 0, bytes);
                case ALL_GATHER -> parts.forEach(from -> copy(from, 0, to, from.rank * bytes, bytes));
                case ALL_TO_ALL -> parts.forEach(from -> copy(from, to.rank * bytes, to, from.rank * bytes, bytes));
                case SEND, RECEIVE -> {
                    if (to.call.kind() == Kind.RECEIVE) {
                        copy(part(to.call.peer()), 0, to, 0, bytes);
                    }
                }
            }
        }
    }

    private Part part(int rank) {
        return parts.stream().filter(part -> part.rank == rank).findFirst().orElseThrow();
    }

    private static void copy(Part from, long offset, Part to, long toOffset, long bytes) {
        MemorySegment.copy(from.given, offset, to.result, toOffset, bytes);
    }

    private void reduce(Part to, long offset, Collective call) {
        long bytes = call.count() * call.type().byteSize();
        List<MemorySegment> given = parts.stream()
                .sorted((a, b) -> Integer.compare(a.rank, b.rank))
                .map(part -> part.given.asSlice(offset, bytes))
                .toList();
        new Reduction(call.type(), call.op()).reduce(given, to.result, call.count());
    }

    /// Releases all streams, with or without the result.
    void letGo() {
        parts.forEach(part -> FLAG.setVolatile(part.flag, 0L, 1));
    }

    /// Stops expecting further ranks to call.
    void abandon() {
        isAbandoned = true;
    }

    /// Returns whether a device's rank has called and others have not.
    boolean lacksRanks(int device) {
        return parts.size() < members && parts.stream().anyMatch(part -> part.device == device);
    }

    /// Frees its memory and events if all expected ranks have called and all streams are past it.
    boolean freeIfDone() {
        boolean done =
                (isAbandoned || parts.size() == members) && parts.stream().allMatch(this::hasPassed);
        if (done) {
            free();
        }
        return done;
    }

    private boolean hasPassed(Part part) {
        boolean[] passed = {true};
        DeadContext.survive(() -> passed[0] = driver.events().hasPassed(part.device, part.done));
        return passed[0];
    }

    private void free() {
        parts.forEach(Part::free);
        parts.clear();
    }

    /// Waits until a device's part is done. Ranks that have not called by now won't, so it ends without their
    /// data.
    void end(int device) {
        if (parts.size() < members) {
            letGo();
        }
        parts.stream()
                .filter(part -> part.device == device)
                .forEach(part -> DeadContext.survive(() -> driver.events().synchronize(device, part.done)));
    }
}
