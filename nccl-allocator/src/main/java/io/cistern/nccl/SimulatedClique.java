package io.cistern.nccl;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The ranks of one simulated communicator. The n-th collective of each rank belongs together, and so do the
/// n-th send from one rank to another and the n-th receive there: each is a [SimulatedExchange].
///
/// **Threads.** Any; its own lock guards everything.
final class SimulatedClique {
    /// The direction of sends between two ranks.
    private record Channel(int from, int to) {}

    /// One rank, and its registrations. Guarded by the clique, as are its counts.
    static final class Rank {
        private final SimulatedClique clique;
        private final int rank;
        private final Map<Long, Long> registered = new ConcurrentHashMap<>();

        /// The number of collectives that it has called.
        private long collectives;

        Rank(SimulatedClique clique, int rank) {
            this.clique = clique;
            this.rank = rank;
        }

        SimulatedClique clique() {
            return clique;
        }

        int rank() {
            return rank;
        }

        long registered(long number, long address) {
            registered.put(number, address);
            return number;
        }

        void deregister(String call, long number) {
            if (registered.remove(number) == null) {
                throw SimulatedNccl.refused(
                        call, NcclResult.INVALID_ARGUMENT, "handle=" + number, "no such registration");
            }
        }
    }

    /// One rank's part in a split.
    private record Wish(int oldRank, int color, int key) {}

    /// A split that is under way until all ranks have named their color.
    private static final class Split {
        final List<Wish> wishes = new ArrayList<>();

        /// The ranks of the new cliques by their old ranks.
        final Map<Integer, Rank> places = new HashMap<>();
    }

    private final SimulatedStaging staging;
    private final int[] devices;
    private final Map<Long, SimulatedExchange> collectives = new HashMap<>();
    private final Map<Channel, List<SimulatedExchange>> unsent = new HashMap<>();
    private final Map<Channel, List<SimulatedExchange>> unreceived = new HashMap<>();
    private final List<SimulatedExchange> underWay = new ArrayList<>();
    private Split split = new Split();
    private NcclResult error = NcclResult.SUCCESS;

    SimulatedClique(SimulatedStaging staging, int... devices) {
        this.staging = staging;
        this.devices = devices;
        for (int device : devices) {
            staging.kernels(device);
        }
    }

    int size() {
        return devices.length;
    }

    synchronized NcclResult error() {
        return error;
    }

    synchronized void enqueue(Rank rank, Collective call, long stream) {
        if (error != NcclResult.SUCCESS) {
            throw SimulatedNccl.refused("nccl " + call.kind(), error, call.toString(), "the communicator has failed");
        }
        requireNoCapture(devices[rank.rank()], call, stream);
        underWay.removeIf(SimulatedExchange::freeIfDone);
        SimulatedExchange exchange = exchange(rank, call);
        try {
            exchange.join(rank.rank(), call, stream, staging.kernels(devices[rank.rank()]));
            notifyAll(); // a finishing rank may wait for this one
        } catch (NcclException failure) {
            fail(failure.result());
            throw failure;
        } catch (CudaException failure) {
            fail(NcclResult.UNHANDLED_CUDA_ERROR);
            throw SimulatedNccl.refused(
                    "nccl " + call.kind(), error, call.toString(), String.valueOf(failure.getMessage()));
        }
    }

    /// An exchange is over once; a graph would repeat it.
    private void requireNoCapture(int device, Collective call, long stream) {
        try {
            if (staging.driver().graphs().captureStatus(device, stream) != CaptureStatus.NONE) {
                throw SimulatedNccl.refused(
                        "nccl " + call.kind(),
                        NcclResult.INVALID_USAGE,
                        call.toString(),
                        "the simulated NCCL can't be captured; make the call outside of the capture");
            }
        } catch (CudaException refusal) {
            throw SimulatedNccl.refused(
                    "nccl " + call.kind(),
                    NcclResult.UNHANDLED_CUDA_ERROR,
                    call.toString(),
                    String.valueOf(refusal.getMessage()));
        }
    }

    /// Returns the exchange that a call belongs to; the first rank to call creates it.
    private SimulatedExchange exchange(Rank rank, Collective call) {
        return switch (call.kind()) {
            case SEND -> matched(new Channel(rank.rank(), call.peer()), unsent, unreceived);
            case RECEIVE -> matched(new Channel(call.peer(), rank.rank()), unreceived, unsent);
            default -> numbered(rank.collectives++);
        };
    }

    private SimulatedExchange numbered(long number) {
        SimulatedExchange exchange = collectives.computeIfAbsent(number, _ -> newExchange(devices.length));
        if (exchange.expectsOne()) {
            collectives.remove(number);
        }
        return exchange;
    }

    /// @param mine exchanges that the other side created and that wait for this side
    /// @param theirs the place for exchanges that this side creates and that wait for the other
    private SimulatedExchange matched(
            Channel channel, Map<Channel, List<SimulatedExchange>> mine, Map<Channel, List<SimulatedExchange>> theirs) {
        List<SimulatedExchange> waiting = mine.getOrDefault(channel, List.of());
        if (!waiting.isEmpty()) {
            return waiting.removeFirst();
        }
        SimulatedExchange exchange = newExchange(2);
        theirs.computeIfAbsent(channel, _ -> new ArrayList<>()).add(exchange);
        return exchange;
    }

    private SimulatedExchange newExchange(int members) {
        SimulatedExchange exchange = new SimulatedExchange(staging, devices, members);
        underWay.add(exchange);
        return exchange;
    }

    /// Releases streams that wait for ranks that will never call.
    private void fail(NcclResult result) {
        error = result;
        underWay.forEach(SimulatedExchange::letGo);
        staging.abandon(underWay);
        underWay.clear();
        collectives.clear();
        unsent.clear();
        unreceived.clear();
        notifyAll();
    }

    synchronized void abort() {
        fail(NcclResult.REMOTE_ERROR);
    }

    /// Waits until all ranks have called what a rank has called, and for the rank's work.
    synchronized void finish(int device) {
        awaitChange("ncclCommFinalize", () -> underWay.stream().noneMatch(exchange -> exchange.lacksRanks(device)));
        end(device);
    }

    /// Waits for the work of a rank. Ranks that have not called by now won't.
    synchronized void end(int device) {
        underWay.forEach(exchange -> exchange.end(device));
        underWay.removeIf(SimulatedExchange::freeIfDone);
    }

    /// Waits for a condition that changes when ranks call, unless the communicator fails. An interrupt does not end
    /// the wait but is kept.
    private void awaitChange(String call, BooleanSupplier condition) {
        boolean interrupted = false;
        try {
            while (error == NcclResult.SUCCESS && !condition.getAsBoolean()) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        if (!condition.getAsBoolean()) {
            throw SimulatedNccl.refused(call, error, "", "the communicator has failed");
        }
    }

    /// Waits until all ranks have named their color.
    ///
    /// @return the new ranks of these; null for one that joins no clique
    synchronized List<@Nullable Rank> split(List<Rank> members, int[] colors, int[] keys) {
        Split current = split;
        for (int i = 0; i < colors.length; i++) {
            current.wishes.add(new Wish(members.get(i).rank, colors[i], keys[i]));
        }
        if (current.wishes.size() == devices.length) {
            decide(current);
            split = new Split();
            notifyAll();
        }
        awaitChange("ncclCommSplit", () -> current.wishes.size() == devices.length);
        List<@Nullable Rank> places = new ArrayList<>();
        members.forEach(member -> places.add(current.places.get(member.rank)));
        return places;
    }

    /// Creates the new cliques: the ranks of a color, ordered by key and then by old rank.
    private void decide(Split decided) {
        Map<Integer, List<Wish>> byColor = decided.wishes.stream()
                .filter(wish -> wish.color >= 0)
                .sorted(Comparator.comparingInt(Wish::key).thenComparingInt(Wish::oldRank))
                .collect(Collectors.groupingBy(Wish::color));
        for (List<Wish> members : byColor.values()) {
            SimulatedClique clique = new SimulatedClique(
                    staging,
                    members.stream().mapToInt(wish -> devices[wish.oldRank]).toArray());
            for (int i = 0; i < members.size(); i++) {
                decided.places.put(members.get(i).oldRank, new Rank(clique, i));
            }
        }
    }
}
