package io.cistern.nccl;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// The ranks of one simulated communicator. The n-th collective of each rank belongs together, and so do the
/// n-th send from one rank to another and the n-th receive there: each is a [SimulatedExchange].
///
/// **Threads.** Any; its own lock guards everything.
final class SimulatedClique {
    /// The direction of sends between two ranks.
    private record Channel(int from, int to) {}

    private final SimulatedStaging staging;
    private final int[] devices;
    private final Map<Long, SimulatedExchange> collectives = new HashMap<>();
    private final Map<Channel, List<SimulatedExchange>> unsent = new HashMap<>();
    private final Map<Channel, List<SimulatedExchange>> unreceived = new HashMap<>();
    private final List<SimulatedExchange> underWay = new ArrayList<>();
    private @Nullable SimulatedSplit split;
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

    synchronized void enqueue(SimulatedRank rank, Collective call, long stream) {
        if (error != NcclResult.SUCCESS) {
            throw SimulatedNccl.refused("nccl " + call.kind(), error, call.toString(), "the communicator has failed");
        }
        requireNoCapture(devices[rank.rank()], call, stream);
        underWay.removeIf(SimulatedExchange::freeIfDone);
        SimulatedExchange exchange = exchange(rank, call);
        try {
            exchange.join(rank.rank(), call, stream, staging.kernels(devices[rank.rank()]));
            notifyAll(); // who finishes may wait for this rank
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
    private SimulatedExchange exchange(SimulatedRank rank, Collective call) {
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

    /// Releases streams that wait for ranks which will not come.
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
    synchronized SimulatedSplit split(List<SimulatedRank> members, int[] colors, int[] keys) {
        SimulatedSplit current = split;
        if (current == null) {
            current = new SimulatedSplit(devices);
            split = current;
        }
        for (int i = 0; i < colors.length; i++) {
            current.wish(members.get(i).rank(), colors[i], keys[i]);
        }
        if (current.isComplete()) {
            current.decide(staging);
            split = null;
            notifyAll();
        }
        awaitChange("ncclCommSplit", current::isComplete);
        return current;
    }
}
