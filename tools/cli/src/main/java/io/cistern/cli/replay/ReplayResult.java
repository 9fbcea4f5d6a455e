package io.cistern.cli.replay;

import io.cistern.AllocatorStatistics;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cli.common.Work;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// The result of one trace through one allocator.
///
/// @param trace the trace's name
/// @param allocator the spec as given
/// @param device the label of the device
/// @param work the work on blocks
/// @param layer the form in which blocks were held
/// @param operations allocations and frees of the trace
/// @param requestedPeakBytes the peak of requested bytes; on several devices, the sum of their peaks
/// @param skippedRefusals requests that were refused during recording, which the replay leaves out
/// @param outcome the passes that are reported: the timed ones, or for [Work#CHECK] the observed ones
/// @param reservedPeakBytes the most bytes reserved in the observed passes
/// @param unreturnedBytes bytes that closing the allocator did not give back; empty if other programs
///     could blur it
/// @param played the numbers of `threads` and `devices` that took part, if the command line asked for them
record ReplayResult(
        String trace,
        String allocator,
        String device,
        Work work,
        Layer layer,
        int operations,
        long requestedPeakBytes,
        int skippedRefusals,
        ReplaySession.Outcome outcome,
        long reservedPeakBytes,
        OptionalLong unreturnedBytes,
        Map<String, Integer> played) {
    /// Returns the allocations that failed, over all passes.
    long failures() {
        return outcome.passes().stream().mapToLong(Replay.Pass::failures).sum();
    }

    /// Returns the host time per operation, the median of the passes after the first; empty if not timed.
    OptionalDouble nanosPerOperation() {
        return timed(medianAfterFirst(Replay.Pass::hostNanos) / operations);
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
        return device.equals("simulated")
                ? OptionalDouble.of(outcome.passes().getLast().driverNanos() / 1e6)
                : OptionalDouble.empty();
    }

    /// Returns the allocator's driver calls in the first pass.
    long firstPassDriverCalls() {
        return outcome.passes().getFirst().driverCalls();
    }

    /// Returns the allocator's driver calls in the last pass.
    long driverCalls() {
        return outcome.passes().getLast().driverCalls();
    }

    /// Returns the allocator's driver calls in each pass.
    List<Long> passDriverCalls() {
        return outcome.passes().stream().map(Replay.Pass::driverCalls).toList();
    }

    /// Returns the most bytes reserved; empty if that can't be known, because the simulated GPU does not know
    /// the memory of native code.
    OptionalLong knownReservedPeakBytes() {
        return reservedPeakBytes == 0 && requestedPeakBytes > 0
                ? OptionalLong.empty()
                : OptionalLong.of(reservedPeakBytes);
    }

    /// Returns reserved over requested peak; empty if nothing was requested or the reserved peak is unknown.
    OptionalDouble ratio() {
        return requestedPeakBytes == 0 || reservedPeakBytes == 0
                ? OptionalDouble.empty()
                : OptionalDouble.of((double) reservedPeakBytes / requestedPeakBytes);
    }

    /// Returns the fields of a JSON object; unknown values are null.
    Map<String, @Nullable Object> fields() {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("trace", trace);
        fields.put("allocator", allocator);
        fields.put("device", device);
        fields.put("work", work.name().toLowerCase(java.util.Locale.ROOT));
        fields.put("layer", layer.name().toLowerCase(java.util.Locale.ROOT));
        fields.put("operations", operations);
        fields.put("skippedRefusals", skippedRefusals);
        fields.put("passes", outcome.passes().size());
        fields.put("failures", failures());
        fields.put("nanosPerOperation", orNull(nanosPerOperation()));
        fields.put("requestedPeakBytes", requestedPeakBytes);
        fields.put("reservedPeakBytes", orNull(knownReservedPeakBytes()));
        fields.put("ratio", orNull(ratio()));
        fields.put("wallMillis", orNull(wallMillis()));
        fields.put("driverCalls", driverCalls());
        fields.put("firstPassMillis", orNull(firstPassMillis()));
        fields.put("firstPassDriverCalls", firstPassDriverCalls());
        fields.put("passDriverCalls", passDriverCalls());
        fields.put("simulatedDriverMillis", orNull(simulatedDriverMillis()));
        fields.put("mismatches", work == Work.CHECK ? outcome.mismatches() : null);
        fields.put("metered", metered());
        fields.put("swaps", outcome.routed().swaps());
        fields.put("drained", outcome.routed().drained());
        fields.put("pools", outcome.routed().pools());
        fields.put("driverPools", outcome.pools().map(PoolFigures::fields).orElse(null));
        fields.put("unreturnedBytes", orNull(unreturnedBytes));
        fields.putAll(played);
        return fields;
    }

    private Map<String, @Nullable Object> metered() {
        AllocatorStatistics statistics = outcome.metered();
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("allocations", statistics.allocations());
        fields.put("frees", statistics.frees());
        fields.put("requestedTotalBytes", statistics.requestedTotalBytes());
        // Allocators that served one after another had their peaks at different times.
        fields.put("requestedPeakBytes", outcome.routed().ofOneAllocator() ? statistics.requestedPeakBytes() : null);
        return fields;
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

    private static @Nullable Long orNull(OptionalLong value) {
        return value.isPresent() ? value.getAsLong() : null;
    }

    private static @Nullable Double orNull(OptionalDouble value) {
        return value.isPresent() ? value.getAsDouble() : null;
    }
}
