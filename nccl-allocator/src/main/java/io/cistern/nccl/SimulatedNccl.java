package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.nccl.Collective.Kind;
import io.cistern.nccl.SimulatedClique.Rank;
import io.cistern.nccl.internal.segment.MappedMemory;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Implements NCCL in plain Java over any driver. All ranks are in one process; collectives move data in stream
/// order, and wait for each other by NCCL's rules. Meant for the simulated GPU; it copies through the host, so
/// it is slow.
///
/// A call returns at once; its stream waits until all ranks have called, as with NCCL. Ranks that disagree fail
/// with [NcclResult#INVALID_USAGE], where NCCL would hang or corrupt memory.
final class SimulatedNccl implements NcclApi {
    /// The version that it imitates.
    private static final int VERSION = 22803;

    private static final SecureRandom RANDOM = new SecureRandom();

    /// The meeting points of ids whose ranks have not all met.
    private static final Map<UniqueId, MeetingPoint> MEETING_POINTS = new ConcurrentHashMap<>();

    /// Lets the ranks of one unique id wait for each other. Guarded by its own monitor.
    private static final class MeetingPoint {
        private static final int ABSENT = -1;

        private final CompletableFuture<int[]> all = new CompletableFuture<>();
        private int[] devices = {};
        private int arrived;
        private @Nullable SimulatedClique clique;

        /// Waits until all ranks have arrived.
        ///
        /// @return the devices, by rank
        int[] meet(int rankCount, int firstRank, int... here) {
            arrive(rankCount, firstRank, here);
            return all.join(); // an interrupt does not end the wait
        }

        private synchronized void arrive(int rankCount, int firstRank, int... here) {
            if (devices.length == 0) {
                devices = new int[rankCount];
                Arrays.fill(devices, ABSENT);
            }
            for (int i = 0; i < here.length; i++) {
                if (rankCount != devices.length || devices[firstRank + i] != ABSENT) {
                    throw refused(
                            "ncclCommInitRank",
                            NcclResult.INVALID_USAGE,
                            "rankCount=" + rankCount + ", rank=" + (firstRank + i),
                            "another rank expects " + devices.length + " ranks, or has the same number");
                }
                devices[firstRank + i] = here[i];
                arrived++;
            }
            if (arrived == devices.length) {
                all.complete(devices);
            }
        }

        synchronized SimulatedClique clique(SimulatedStaging staging) {
            if (clique == null) {
                clique = new SimulatedClique(staging, devices);
            }
            return clique;
        }
    }

    private record GroupCall(Rank rank, Collective call, long stream) {
        void enqueue() {
            rank.clique().enqueue(rank, call, stream);
        }
    }

    /// The calls of the group that a thread is in.
    private static final class OpenGroup {
        int depth;
        final List<GroupCall> calls = new ArrayList<>();
    }

    private static final ThreadLocal<@Nullable OpenGroup> GROUP = new ThreadLocal<>();

    private final CudaDriver driver;
    private final SimulatedStaging staging;
    private final MappedMemory memory;
    private final AtomicLong numbers = new AtomicLong();
    private final Map<Long, Rank> ranks = new ConcurrentHashMap<>();

    SimulatedNccl(CudaDriver driver) {
        this.driver = driver;
        this.staging = new SimulatedStaging(driver);
        this.memory = new MappedMemory(driver);
    }

    @Override
    public int version() {
        return VERSION;
    }

    @Override
    public String description() {
        return "simulated NCCL " + NcclLibrary.text(VERSION);
    }

    @Override
    public UniqueId uniqueId() {
        byte[] bytes = new byte[UniqueId.BYTES];
        RANDOM.nextBytes(bytes);
        UniqueId id = UniqueId.of(bytes);
        MEETING_POINTS.put(id, new MeetingPoint());
        return id;
    }

    @Override
    public long[] initAll(int[] devices) {
        requireDevices(devices);
        return initRanks(uniqueId(), devices.length, 0, devices);
    }

    @Override
    public long[] initRanks(UniqueId id, int rankCount, int firstRank, int[] devices) {
        requireDevices(devices);
        MeetingPoint point = MEETING_POINTS.get(id);
        if (point == null) {
            throw refused(
                    "ncclCommInitRank",
                    NcclResult.INVALID_ARGUMENT,
                    id.toString(),
                    "this process has no such id: simulated ranks share a process, and an id serves one communicator");
        }
        int[] all = point.meet(rankCount, firstRank, devices);
        MEETING_POINTS.remove(id);
        if (all.length != new HashSet<>(Arrays.stream(all).boxed().toList()).size()) {
            throw refused("ncclCommInitRank", NcclResult.INVALID_USAGE, Arrays.toString(all), "duplicate GPU");
        }
        SimulatedClique clique = point.clique(staging);
        long[] handles = new long[devices.length];
        for (int i = 0; i < devices.length; i++) {
            handles[i] = add(new Rank(clique, firstRank + i));
        }
        return handles;
    }

    private void requireDevices(int... devices) {
        for (int device : devices) {
            if (device < 0 || device >= driver.devices().count()) {
                throw refused("ncclCommInitRank", NcclResult.INVALID_ARGUMENT, "device=" + device, "no such device");
            }
        }
    }

    private long add(Rank rank) {
        long number = numbers.incrementAndGet();
        ranks.put(number, rank);
        return number;
    }

    static NcclException refused(String call, NcclResult result, String arguments, String why) {
        return new NcclException(call, result.code(), arguments, why);
    }

    private Rank rankOf(Handle communicator) {
        Rank rank = ranks.get(communicator.value());
        if (rank == null) {
            throw refused("ncclComm", NcclResult.INVALID_ARGUMENT, communicator.toString(), "no such communicator");
        }
        return rank;
    }

    @Override
    public long[] split(Handle[] communicators, int[] colors, int[] keys) {
        List<Rank> members = Arrays.stream(communicators).map(this::rankOf).toList();
        return members.getFirst().clique().split(members, colors, keys).stream()
                .mapToLong(rank -> rank == null ? 0 : add(rank))
                .toArray();
    }

    @Override
    public int rankCount(Handle communicator) {
        return rankOf(communicator).clique().size();
    }

    @Override
    public int rank(Handle communicator) {
        return rankOf(communicator).rank();
    }

    @Override
    public NcclResult asyncError(Handle communicator) {
        return rankOf(communicator).clique().error();
    }

    @Override
    public void finish(Handle communicator) {
        rankOf(communicator).clique().finish(communicator.device());
    }

    @Override
    public void destroy(Handle communicator) {
        Rank rank = ranks.remove(communicator.value());
        if (rank != null) {
            rank.clique().end(communicator.device());
        }
    }

    @Override
    public void abort(Handle communicator) {
        Rank rank = ranks.remove(communicator.value());
        if (rank != null) {
            rank.clique().abort();
        }
    }

    @Override
    public void groupStart() {
        OpenGroup open = GROUP.get();
        if (open == null) {
            open = new OpenGroup();
            GROUP.set(open);
        }
        open.depth++;
    }

    /// Ends a group. Its sends go first: all calls of a group are under way together, so no send may wait for a
    /// receive.
    @Override
    public void groupEnd() {
        OpenGroup open = GROUP.get();
        if (open == null) {
            throw refused("ncclGroupEnd", NcclResult.INVALID_USAGE, "", "no group was started");
        }
        if (--open.depth > 0) {
            return;
        }
        GROUP.remove();
        open.calls.stream().filter(call -> call.call.kind() == Kind.SEND).forEach(GroupCall::enqueue);
        open.calls.stream().filter(call -> call.call.kind() != Kind.SEND).forEach(GroupCall::enqueue);
    }

    @Override
    public void enqueue(Handle communicator, Collective call, long stream) {
        GroupCall one = new GroupCall(rankOf(communicator), call, stream);
        OpenGroup open = GROUP.get();
        if (open != null) {
            open.calls.add(one);
        } else {
            one.enqueue();
        }
    }

    @Override
    public void onDevice(int device, Runnable calls) {
        calls.run();
    }

    @Override
    public long allocate(int device, long byteSize) {
        PhysicalMemory kind = new PhysicalMemory(
                MemoryLocation.device(device), HandleType.POSIX_FILE_DESCRIPTOR.bit(), false, device);
        try {
            return memory.allocate(device, byteSize, kind);
        } catch (CudaException failure) {
            String why = failure.result() == CudaResult.OUT_OF_MEMORY
                    ? "Cuda failure 2 'out of memory'"
                    : String.valueOf(failure.getMessage());
            throw failed("ncclMemAlloc", "device=" + device + ", byteSize=" + byteSize, why, failure);
        }
    }

    @Override
    public void free(int device, long address) {
        try {
            memory.free(address);
        } catch (CudaException failure) {
            String arguments = "address=0x" + Long.toHexString(address);
            throw failed("ncclMemFree", arguments, String.valueOf(failure.getMessage()), failure);
        }
    }

    private static NcclException failed(String call, String arguments, String why, CudaException cause) {
        NcclException failure = refused(call, NcclResult.UNHANDLED_CUDA_ERROR, arguments, why);
        failure.initCause(cause);
        return failure;
    }

    @Override
    public long register(Handle communicator, long address, long byteSize) {
        return rankOf(communicator).registered(numbers.incrementAndGet(), address);
    }

    @Override
    public void deregister(Handle communicator, long registration) {
        rankOf(communicator).deregister("ncclCommDeregister", registration);
    }

    @Override
    public long[] registerWindows(Handle[] communicators, long[] addresses, long byteSize) {
        long[] windows = new long[communicators.length];
        for (int i = 0; i < windows.length; i++) {
            Rank rank = rankOf(communicators[i]);
            windows[i] = rank.registered(numbers.incrementAndGet(), addresses[i]);
        }
        return windows;
    }

    @Override
    public void deregisterWindow(Handle communicator, long window) {
        rankOf(communicator).deregister("ncclCommWindowDeregister", window);
    }
}
