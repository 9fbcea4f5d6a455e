package io.cistern.cli.replay;

import static io.cistern.cli.common.ResultWriter.object;
import static io.cistern.cli.common.ResultWriter.orNull;

import io.cistern.AllocatorStatistics;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cli.common.Work;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// The result of one trace through one allocator.
///
/// @param outcome the passes that are reported: the timed ones, or for [Work#CHECK] the observed ones
/// @param reservedPeakBytes the most bytes reserved in the observed passes
/// @param unreturnedBytes bytes that closing the allocator did not give back; empty if other programs
///     could blur it
/// @param played the numbers of `threads` and `devices` that took part, if the command line asked for them
record ReplayResult(
        ReplaySession session,
        Work work,
        ReplaySession.Outcome outcome,
        long reservedPeakBytes,
        OptionalLong unreturnedBytes,
        Map<String, Integer> played) {
    String trace() {
        return session.trace().name();
    }

    String device() {
        return session.gpu().label();
    }

    /// Returns the peak of requested bytes; on several devices, the sum of their peaks.
    long requestedPeakBytes() {
        return session.trace().origins().sumOfPeakBytes();
    }

    long failures() {
        return outcome.passes().stream().mapToLong(Replay.Pass::failures).sum();
    }

    /// Returns the host time per operation, the median of the passes after the first; empty if not timed.
    OptionalDouble nanosPerOperation() {
        return timed(medianAfterFirst(Replay.Pass::hostNanos) / session.trace().operations());
    }

    /// Returns the time of a pass with the wait for the device, the median of those after the first; empty
    /// if not timed.
    OptionalDouble wallMillis() {
        return timed(medianAfterFirst(Replay.Pass::wallNanos) / 1e6);
    }

    /// Returns the time of the first pass, like [#wallMillis].
    OptionalDouble firstPassMillis() {
        return timed(outcome.passes().getFirst().wallNanos() / 1e6);
    }

    /// Returns the time that a real GPU's driver would have taken for the calls of the last pass; empty on
    /// a real GPU.
    OptionalDouble simulatedDriverMillis() {
        return device().equals("simulated")
                ? OptionalDouble.of(outcome.passes().getLast().driverNanos() / 1e6)
                : OptionalDouble.empty();
    }

    long firstPassDriverCalls() {
        return outcome.passes().getFirst().driverCalls();
    }

    long driverCalls() {
        return outcome.passes().getLast().driverCalls();
    }

    List<Long> passDriverCalls() {
        return outcome.passes().stream().map(Replay.Pass::driverCalls).toList();
    }

    /// Returns the most bytes reserved; empty if that can't be known, because the simulated GPU does not know
    /// the memory of native code.
    OptionalLong knownReservedPeakBytes() {
        return reservedPeakBytes == 0 && requestedPeakBytes() > 0
                ? OptionalLong.empty()
                : OptionalLong.of(reservedPeakBytes);
    }

    /// Returns reserved over requested peak; empty if nothing was requested or the reserved peak is unknown.
    OptionalDouble ratio() {
        return requestedPeakBytes() == 0 || reservedPeakBytes == 0
                ? OptionalDouble.empty()
                : OptionalDouble.of((double) reservedPeakBytes / requestedPeakBytes());
    }

    Map<String, @Nullable Object> fields() {
        Map<String, @Nullable Object> fields = object(
                "trace", trace(),
                "allocator", session.spec(),
                "device", device(),
                "work", work.name().toLowerCase(java.util.Locale.ROOT),
                "layer", session.plan().layer().name().toLowerCase(java.util.Locale.ROOT),
                "operations", session.trace().operations(),
                "skippedRefusals", session.trace().skippedRefusals(),
                "passes", outcome.passes().size(),
                "failures", failures(),
                "nanosPerOperation", orNull(nanosPerOperation()),
                "requestedPeakBytes", requestedPeakBytes(),
                "reservedPeakBytes", orNull(knownReservedPeakBytes()),
                "ratio", orNull(ratio()),
                "wallMillis", orNull(wallMillis()),
                "driverCalls", driverCalls(),
                "firstPassMillis", orNull(firstPassMillis()),
                "firstPassDriverCalls", firstPassDriverCalls(),
                "passDriverCalls", passDriverCalls(),
                "simulatedDriverMillis", orNull(simulatedDriverMillis()),
                "mismatches", work == Work.CHECK ? outcome.mismatches() : null,
                "metered", metered(),
                "swaps", outcome.routed().swaps(),
                "drained", outcome.routed().drained(),
                "pools", outcome.routed().pools(),
                "driverPools", outcome.pools().map(PoolFigures::fields).orElse(null),
                "unreturnedBytes", orNull(unreturnedBytes));
        fields.putAll(played);
        return fields;
    }

    private Map<String, @Nullable Object> metered() {
        AllocatorStatistics statistics = outcome.metered();
        // Allocators that served one after another had their peaks at different times.
        boolean hasPeak = outcome.routed().ofOneAllocator();
        return object(
                "allocations", statistics.allocations(),
                "frees", statistics.frees(),
                "requestedTotalBytes", statistics.requestedTotalBytes(),
                "requestedPeakBytes", hasPeak ? statistics.requestedPeakBytes() : null);
    }

    private OptionalDouble timed(double value) {
        return work == Work.CHECK ? OptionalDouble.empty() : OptionalDouble.of(value);
    }

    private double medianAfterFirst(ToLongFunction<Replay.Pass> time) {
        List<Replay.Pass> passes = outcome.passes();
        List<Replay.Pass> counted = passes.size() == 1 ? passes : passes.subList(1, passes.size());
        long[] times = counted.stream().mapToLong(time).sorted().toArray();
        return (times[(times.length - 1) / 2] + times[times.length / 2]) / 2.0;
    }
}
