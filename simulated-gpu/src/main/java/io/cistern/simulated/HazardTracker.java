package io.cistern.simulated;

import io.cistern.cuda.DriverCall;
import io.cistern.simulated.internal.space.AddressSpace;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.ArrayList;
import java.util.List;

/// Finds uses of memory that are not ordered with its allocation or its free.
///
/// **Method.** Vector clocks. For each other stream, a stream's clock holds the work that happened before its
/// next work. The clock grows when the stream waits for an event, and by the rule between the legacy default
/// stream and blocking streams. The host has one clock too: what it covers happened before everything issued
/// later. It grows when the host synchronises, and when a query answers "done". Work `n` of stream `a` is
/// ordered before an operation on stream `b` if `a = b`, or if `b`'s or the host's clock covers `(a, n)`.
///
/// 1. A use (fill, copy, a kernel's declared ranges) on `b` of memory that was allocated in stream order on
///    `a`: the allocation must be ordered before it.
/// 2. A free on `a` in stream order: the last use of the memory by each other stream must be ordered before it.
/// 3. Unmapping: the last uses of the mapping must be finished.
/// 4. A use of an address inside a chunk or a pool that belongs to no live allocation: it was freed before, in
///    the order of calls.
///
/// **Limits.** All host threads are treated as one. Kernels are checked by the ranges that they declare;
/// when they run, only mappings are checked. The tracker does not see blocks that an allocator makes out of
/// one driver allocation. Reports stop at 10,000. Guarded by the machine's lock.
final class HazardTracker {
    private static final int MAX_REPORTS = 10_000;

    private final AddressSpace space;
    private final StreamClock hostClock;
    private final List<Misuse> misuses = new ArrayList<>();

    HazardTracker(AddressSpace space, StreamClock hostClock) {
        this.space = space;
        this.hostClock = hostClock;
    }

    List<Misuse> misuses() {
        return List.copyOf(misuses);
    }

    void report(Misuse.Kind kind, DriverCall call, int device, long address, String description) {
        if (misuses.size() < MAX_REPORTS) {
            misuses.add(new Misuse(kind, call, device, address, description));
        }
    }

    /// Records and checks that the stream's next work uses a range.
    void use(DriverCall call, StreamQueue stream, long address, long byteSize) {
        long at = address;
        while (at < address + byteSize) {
            Mapping mapping = space.mappingAt(at);
            if (mapping == null) {
                return;
            }
            mapping.uses().mark(stream, stream.issued() + 1);
            at = mapping.end();
        }
        Allocation allocation = space.allocationAt(address);
        if (allocation == null) {
            return;
        }
        allocation.uses().mark(stream, stream.issued() + 1);
        StreamQueue origin = allocation.stream();
        if (origin != null && !ordered(origin, allocation.sequence(), stream)) {
            report(
                    Misuse.Kind.USE_BEFORE_ALLOCATION,
                    call,
                    stream.device(),
                    address,
                    "used on stream " + stream.id() + ", which does not wait for the allocation on stream "
                            + origin.id());
        }
    }

    /// Checks that the stream's next work may free an allocation.
    void free(DriverCall call, StreamQueue stream, Allocation allocation) {
        StreamQueue other = allocation.uses().find((user, sequence) -> !ordered(user, sequence, stream));
        if (other != null) {
            report(
                    Misuse.Kind.FREE_BEFORE_USE_ENDS,
                    call,
                    stream.device(),
                    allocation.address(),
                    "freed on stream " + stream.id() + ", which does not wait for the use on stream " + other.id());
        }
    }

    void unmap(Mapping mapping, int device) {
        StreamQueue user = mapping.uses().find((stream, sequence) -> sequence > stream.completed());
        if (user != null) {
            report(
                    Misuse.Kind.UNMAP_WHILE_IN_USE,
                    DriverCall.MEM_UNMAP,
                    device,
                    mapping.address(),
                    "work on stream " + user.id() + " that uses it is not finished");
        }
    }

    private boolean ordered(StreamQueue before, long sequence, StreamQueue after) {
        return before == after || after.clock().covers(before, sequence) || hostClock.covers(before, sequence);
    }
}
