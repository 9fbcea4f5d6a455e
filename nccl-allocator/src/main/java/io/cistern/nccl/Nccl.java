package io.cistern.nccl;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.internal.call.BlockingWork;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// NCCL for one [DeviceMemory]: creates communicators and groups their calls. On a real driver it calls
/// libnccl 2.19.1 or newer. The setting `cistern.nccl.library` names the library's file or folder; the
/// default is `libnccl.so.2`. On the simulated GPU, NCCL is simulated, too: it moves data, but only
/// within one process.
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
/// **Threads.** Any thread may call any method at any time. While a call waits for other ranks, a
/// virtual thread parks and frees its carrier.
public final class Nccl {
    private final NcclApi api;

    Nccl(NcclApi api) {
        this.api = api;
    }

    /// Returns NCCL for the process's own device memory.
    ///
    /// @throws ConfigurationException if NCCL can't be used; the message gives the reason
    public static Nccl system() {
        return of(DeviceMemory.system());
    }

    /// Returns NCCL for a device memory.
    ///
    /// @throws ConfigurationException if NCCL can't be used; the message gives the reason
    public static Nccl of(DeviceMemory memory) {
        return new Nccl(NcclApis.of(memory.driver()));
    }

    /// Returns NCCL's version, coded as `ncclGetVersion` does: 10000 × major + 100 × minor + patch.
    public int version() {
        return api.version();
    }

    /// Returns a human-readable name and version of the library.
    public String description() {
        return api.description();
    }

    /// Creates a communicator of devices of this process (`ncclCommInitAll`): rank i is on `devices[i]`.
    ///
    /// @param devices ordinals of devices, at least one, without duplicates
    /// @return the ranks, in the order of the devices
    /// @throws IllegalArgumentException if `devices` is empty
    /// @throws NcclException if NCCL refuses
    public List<Communicator> initAll(int... devices) {
        requireSome(devices.length);
        return communicators(devices, BlockingWork.get(() -> api.initAll(devices)));
    }

    /// Creates an id by which ranks of several processes find each other. One rank calls this method and
    /// sends the id to the others.
    ///
    /// @throws NcclException if NCCL refuses
    public UniqueId uniqueId() {
        return api.uniqueId();
    }

    /// Creates this process's rank of a communicator (`ncclCommInitRank`), and waits until all other ranks have
    /// joined.
    ///
    /// @param id the id that one rank created
    /// @param rankCount the number of ranks in all processes
    /// @param rank this rank, from 0
    /// @param device the ordinal of this rank's device
    /// @throws IllegalArgumentException if the rank is not in 0 … `rankCount` − 1
    /// @throws NcclException if NCCL refuses
    public Communicator initRank(UniqueId id, int rankCount, int rank, int device) {
        return initRanks(id, rankCount, rank, device).getFirst();
    }

    /// Creates several ranks of a communicator in this process, and waits until all other ranks have joined.
    ///
    /// @param id the id that one rank created
    /// @param rankCount the number of ranks in all processes
    /// @param firstRank the rank of the first device in `devices`; the other devices have the ranks that follow
    /// @param devices ordinals of devices, at least one
    /// @return the ranks, in the order of the devices
    /// @throws IllegalArgumentException if `devices` is empty, or a rank is not in 0 … `rankCount` − 1
    /// @throws NcclException if NCCL refuses
    public List<Communicator> initRanks(UniqueId id, int rankCount, int firstRank, int... devices) {
        requireSome(devices.length);
        long end = (long) firstRank + devices.length;
        if (firstRank < 0 || end > rankCount) {
            throw new IllegalArgumentException(
                    "ranks " + firstRank + " to " + (end - 1) + " are not all from 0 to " + (rankCount - 1L));
        }
        return communicators(devices, BlockingWork.get(() -> api.initRanks(id, rankCount, firstRank, devices)));
    }

    private static void requireSome(int count) {
        if (count == 0) {
            throw new IllegalArgumentException("a communicator has at least one rank");
        }
    }

    private List<Communicator> communicators(int[] devices, long... handles) {
        return made(devices, handles).stream().map(Optional::orElseThrow).toList();
    }

    /// Returns the communicator of each handle, and none for 0. If that fails, all handles are freed.
    private List<Optional<Communicator>> made(int[] devices, long... handles) {
        try {
            List<Optional<Communicator>> made = new ArrayList<>();
            for (int i = 0; i < handles.length; i++) {
                made.add(
                        handles[i] == 0
                                ? Optional.empty()
                                : Optional.of(new Communicator(api, handles[i], devices[i])));
            }
            return made;
        } catch (RuntimeException | Error failure) {
            BlockingWork.run(() -> abortAll(devices, handles, failure));
            throw failure;
        }
    }

    private void abortAll(int[] devices, long[] handles, Throwable failure) {
        for (int i = 0; i < handles.length; i++) {
            try {
                if (handles[i] != 0) {
                    api.abort(new NcclApi.Handle(handles[i], devices[i]));
                }
            } catch (NcclException second) {
                failure.addSuppressed(second);
            }
        }
    }

    /// Splits a communicator (`ncclCommSplit`). The call is **collective** among all its ranks. Ranks of the
    /// same color form a new communicator, in which they are ordered by their keys.
    ///
    /// @param ranks the ranks of this process that one thread drives, at least one
    /// @param colors the color of each of `ranks`; if it is negative, the rank joins no new communicator
    /// @param keys the key of each of `ranks`; ranks with equal keys keep their old order
    /// @return for each of `ranks`, its rank in a new communicator; empty if it joined none
    /// @throws IllegalArgumentException if `ranks` is empty, or the lengths differ
    /// @throws IllegalStateException if one of `ranks` was finished, closed or aborted
    /// @throws NcclException if NCCL refuses
    public List<Optional<Communicator>> split(List<Communicator> ranks, int[] colors, int[] keys) {
        if (ranks.isEmpty() || ranks.size() != colors.length || ranks.size() != keys.length) {
            throw new IllegalArgumentException(ranks.size() + " ranks, " + colors.length + " colors and " + keys.length
                    + " keys: a split needs at least one rank, and one color and key for each");
        }
        NcclApi.Handle[] handles = ranks.stream().map(Communicator::handle).toArray(NcclApi.Handle[]::new);
        int[] devices = ranks.stream().mapToInt(Communicator::device).toArray();
        return made(devices, BlockingWork.get(() -> locked(ranks, () -> api.split(handles, colors, keys))));
    }

    /// Makes a call that needs several communicators. They are taken in the order of their creation, so that two
    /// calls can't wait for each other.
    static <T> T locked(List<Communicator> ranks, Supplier<T> call) {
        List<Communicator> inOrder = ranks.stream()
                .sorted(Comparator.comparingLong(Communicator::number))
                .toList();
        int entered = 0;
        try {
            for (; entered < inOrder.size(); entered++) {
                inOrder.get(entered).enter();
            }
            return call.get();
        } finally {
            while (entered > 0) { // needs no Java heap
                inOrder.get(--entered).leave();
            }
        }
    }

    /// Runs code and makes its collective calls together, as one group (`ncclGroupStart`, `ncclGroupEnd`). Use
    /// it for calls of several ranks that wait for each other, and for a rank that sends and receives at the
    /// same time. The calls are made when the code has returned; if the code throws, none is made. A group
    /// inside a group becomes part of the outer one. Buffers must be open until the outermost group ends.
    ///
    /// @throws IllegalStateException if a communicator is closed, or a buffer of a call was closed inside the
    ///     group. No call is made then
    /// @throws NcclException the error of the first call that fails
    public void group(Runnable calls) {
        Group.of(api, calls);
    }

    /// Registers a pool as a window with several ranks that one thread drives, as [Communicator#registerWindow]
    /// does with one.
    ///
    /// @return the windows, in the order of the ranks
    /// @throws IllegalArgumentException if `ranks` is empty
    public List<Window> registerWindows(List<Communicator> ranks, MemoryPool pool) {
        requireSome(ranks.size());
        return Window.open(api, ranks, pool);
    }

    /// Returns a human-readable name and version of the library.
    @Override
    public String toString() {
        return description();
    }
}
