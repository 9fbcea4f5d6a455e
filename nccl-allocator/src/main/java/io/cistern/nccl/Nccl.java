package io.cistern.nccl;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.errors.ConfigurationException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// NCCL for one device memory: makes communicators, and groups their calls. On a real driver it is libnccl, found at
/// run time: under the property `cistern.nccl.library` or the environment variable `CISTERN_NCCL_LIBRARY`, which name
/// its file or folder, else as `libnccl.so.2`; 2.19.1 or newer. On the simulated GPU it is simulated, in one process,
/// and carries data too.
///
/// ```java
/// Nccl nccl = Nccl.system();
/// try (MemoryPool pool = MemoryPool.of("nccl"); Scope scope = pool.enter()) {
///     DeviceBuffer gradients = DeviceBuffer.allocate(bytes, stream);      // ncclMemAlloc
///     communicator.register(pool);
///     communicator.allReduce(gradients, DataType.FLOAT32, ReductionOp.SUM, stream);
/// }
/// ```
///
/// **Threads.** Any. Calls that wait for other ranks keep a virtual thread parked, not its carrier.
public final class Nccl {
    private final NcclApi api;

    Nccl(NcclApi api) {
        this.api = api;
    }

    /// NCCL for the process's own device memory.
    ///
    /// @throws ConfigurationException if there is none that can be used, with the reason
    public static Nccl system() {
        return of(DeviceMemory.system());
    }

    /// NCCL for a device memory.
    ///
    /// @throws ConfigurationException if there is none that can be used, with the reason
    public static Nccl of(DeviceMemory memory) {
        return new Nccl(NcclApis.of(memory.driver()));
    }

    /// Its version as `ncclGetVersion` codes it: 10000 × major + 100 × minor + patch.
    public int version() {
        return api.version();
    }

    /// Library and version for people.
    public String description() {
        return api.description();
    }

    /// Makes a communicator of devices of this process (`ncclCommInitAll`): rank i is on `devices[i]`.
    ///
    /// @param devices at least one, none twice
    /// @throws NcclException if NCCL refuses
    public List<Communicator> initAll(int... devices) {
        requireSome(devices.length);
        return communicators(devices, BlockingWork.get(() -> api.initAll(devices)));
    }

    /// Makes an id by which ranks of several processes find each other. One rank does it.
    ///
    /// @throws NcclException if NCCL refuses
    public UniqueId uniqueId() {
        return api.uniqueId();
    }

    /// Makes this process's rank of a communicator (`ncclCommInitRank`), and waits for all other ranks to do so.
    ///
    /// @param rankCount how many ranks there are in all
    /// @param rank this one, from 0
    /// @throws NcclException if NCCL refuses
    public Communicator initRank(UniqueId id, int rankCount, int rank, int device) {
        return initRanks(id, rankCount, rank, device).getFirst();
    }

    /// Makes several ranks of a communicator in this process, and waits for all others.
    ///
    /// @param rankCount how many ranks there are in all
    /// @param firstRank the rank of the first device here; those of the others follow
    /// @throws NcclException if NCCL refuses
    public List<Communicator> initRanks(UniqueId id, int rankCount, int firstRank, int... devices) {
        requireSome(devices.length);
        if (firstRank < 0 || firstRank + devices.length > rankCount) {
            throw new IllegalArgumentException(
                    "ranks " + firstRank + " to " + (firstRank + devices.length - 1) + " of " + rankCount);
        }
        return communicators(devices, BlockingWork.get(() -> api.initRanks(id, rankCount, firstRank, devices)));
    }

    private static void requireSome(int count) {
        if (count == 0) {
            throw new IllegalArgumentException("a communicator has at least one rank");
        }
    }

    private List<Communicator> communicators(int[] devices, long... handles) {
        List<Communicator> communicators = new ArrayList<>();
        for (int i = 0; i < handles.length; i++) {
            communicators.add(new Communicator(api, handles[i], devices[i]));
        }
        return List.copyOf(communicators);
    }

    /// Splits communicators (`ncclCommSplit`): **collective** among all their ranks. Ranks of one color make a new
    /// communicator, in the order of their keys.
    ///
    /// @param ranks the ranks of this process that one thread drives
    /// @param colors for each, the new communicator it goes to; negative for none
    /// @param keys for each, what the new ranks are ordered by; equal keys by the old rank
    /// @return for each its new rank, if it has one
    /// @throws NcclException if NCCL refuses
    public List<Optional<Communicator>> split(List<Communicator> ranks, int[] colors, int[] keys) {
        if (ranks.isEmpty() || ranks.size() != colors.length || ranks.size() != keys.length) {
            throw new IllegalArgumentException(
                    ranks.size() + " ranks, " + colors.length + " colors, " + keys.length + " keys");
        }
        NcclApi.Handle[] handles = ranks.stream().map(Communicator::handle).toArray(NcclApi.Handle[]::new);
        long[] parts = BlockingWork.get(() -> locked(ranks, () -> api.split(handles, colors, keys)));
        List<Optional<Communicator>> made = new ArrayList<>();
        for (int i = 0; i < parts.length; i++) {
            made.add(
                    parts[i] == 0
                            ? Optional.empty()
                            : Optional.of(new Communicator(api, parts[i], handles[i].device())));
        }
        return made;
    }

    private static long[] locked(List<Communicator> ranks, java.util.function.Supplier<long[]> call) {
        List<Communicator> entered = new ArrayList<>();
        try {
            ranks.stream()
                    .sorted(java.util.Comparator.comparingLong(Communicator::number))
                    .forEach(rank -> {
                        rank.enter();
                        entered.add(rank);
                    });
            return call.get();
        } finally {
            entered.forEach(Communicator::leave);
        }
    }

    /// Makes the calls of some code one group (`ncclGroupStart`, `ncclGroupEnd`): calls of several ranks that wait for
    /// each other, sends and receives at once. They are made together when the code ends; if it throws, none is. A
    /// group within a group is part of it.
    ///
    /// @throws NcclException what the first call that fails says
    public void group(Runnable calls) {
        Group.of(api, calls);
    }

    /// [Registers][Communicator#registerWindow] a pool as a window with several ranks that one thread drives.
    ///
    /// @return the windows, in the order of ranks
    public List<Window> registerWindows(List<Communicator> ranks, MemoryPool pool) {
        requireSome(ranks.size());
        return Window.open(api, ranks, pool);
    }

    /// What can be done here, for people.
    @Override
    public String toString() {
        return description();
    }
}
