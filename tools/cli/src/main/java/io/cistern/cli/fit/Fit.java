package io.cistern.cli.fit;

import io.cistern.cli.fit.Holders.Holder;
import io.cistern.cli.fit.Holders.Moment;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Leaks;
import io.cistern.cli.trace.Leaks.Leak;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// How a recorded program fits on one device.
///
/// @param recording the program on that device
/// @param room what allocators may take; empty if nobody says
/// @param peak when the program asked for most
/// @param servedPeakBytes the most bytes that the recorded program had at once
/// @param leaks what looks like a leak
/// @param answers by allocator
record Fit(
        Recording recording,
        Optional<Room> room,
        Moment peak,
        long servedPeakBytes,
        Leaks leaks,
        List<Answer> answers) {
    /// How a program fits with one allocator.
    ///
    /// @param reservedBytes the most that it reserves if there is enough; empty if no device is large enough
    /// @param failures the rows that fail on the room given
    /// @param smallestBytes the smallest device on which nothing fails
    record Answer(String spec, OptionalLong reservedBytes, List<Integer> failures, OptionalLong smallestBytes) {}

    /// Returns whether everything fits with these allocators; true if there is no room to fit into.
    ///
    /// @param specs the allocators that it is about
    boolean fits(List<String> specs) {
        return answers.stream()
                .filter(answer -> specs.contains(answer.spec))
                .allMatch(answer -> answer.failures.isEmpty());
    }

    /// Returns the memory of a device on which everything is served: the room if it is enough, else the smallest
    /// that is; empty if none is known.
    Optional<Long> capacityFor(Answer answer) {
        if (room.isPresent() && answer.failures.isEmpty()) {
            return Optional.of(room.get().byteSize());
        }
        return answer.smallestBytes.isPresent() ? Optional.of(answer.smallestBytes.getAsLong()) : Optional.empty();
    }

    /// Returns the row whose moment matters most: the last request that was refused, or the peak.
    int decisiveRow() {
        return refusal().map(Refusal::row).orElse(peak.row());
    }

    /// Returns the last request that was refused.
    Optional<Refusal> refusal() {
        List<Refusal> refusals = recording.refusals();
        return refusals.isEmpty() ? Optional.empty() : Optional.of(refusals.getLast());
    }

    /// Returns the bytes that the recorded program's own allocator reserved at most, as its file says; empty also where
    /// that is less than it served, because the file lacks segments.
    OptionalLong recordedBytes() {
        OptionalLong recorded = recording.recorder().reservedPeakBytes(recording.ordinals()[0]);
        return recorded.orElse(0) < servedPeakBytes() ? OptionalLong.empty() : recorded;
    }

    /// Returns the site of a row in short; empty if its call stack is not known.
    String place(int row) {
        return CallStacks.shortened(recording.callStacks().site(recording.stacks()[row]));
    }

    /// Returns the fields of a JSON object; unknown values are null.
    ///
    /// @param file the file's name
    Map<String, @Nullable Object> fields(String file) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("file", file);
        fields.put("recorder", recording.recorder().name());
        fields.put("devices", recording.ordinals());
        fields.put("operations", recording.recordedOperations());
        fields.put("olderBlocks", recording.recorder().olderBlocks());
        fields.put("settingsNotFollowed", UnfollowedSettings.of(recording.recorder()));
        fields.put("requestedPeakBytes", peak.requestedBytes());
        fields.put("servedPeakBytes", servedPeakBytes);
        fields.put("recordedReservedPeakBytes", orNull(recordedBytes()));
        fields.put("capacityBytes", room.map(Room::byteSize).orElse(null));
        fields.put("refused", recording.refusals().stream().map(this::fields).toList());
        fields.put("allocators", answers.stream().map(this::fields).toList());
        fields.put("peakHolders", peak.holders().stream().map(Fit::fields).toList());
        fields.put(
                "leaks",
                leaks.unknown().isEmpty()
                        ? leaks.found().stream().map(Fit::fields).toList()
                        : null);
        return fields;
    }

    private Map<String, @Nullable Object> fields(Refusal refusal) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("byteSize", refusal.byteSize());
        fields.put("nanos", recording.nanos()[refusal.row()]);
        fields.put(
                "deviceFreeBytes",
                refusal.then().freeBytes() < 0 ? null : refusal.then().freeBytes());
        fields.put("site", recording.callStacks().site(recording.stacks()[refusal.row()]));
        return fields;
    }

    private Map<String, @Nullable Object> fields(Answer answer) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("allocator", answer.spec);
        fields.put("reservedPeakBytes", orNull(answer.reservedBytes));
        fields.put("smallestCapacityBytes", orNull(answer.smallestBytes));
        fields.put("fits", room.isPresent() ? answer.failures.isEmpty() : null);
        fields.put("failures", room.isPresent() ? answer.failures.size() : null);
        List<Boolean> granted = new ArrayList<>();
        recording.refusals().forEach(each -> granted.add(!answer.failures.contains(each.row())));
        fields.put("refusedFit", room.isPresent() ? granted : null);
        return fields;
    }

    private static Map<String, @Nullable Object> fields(Holder holder) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("site", holder.site());
        fields.put("byteSize", holder.byteSize());
        fields.put("blocks", holder.blocks());
        return fields;
    }

    private static Map<String, @Nullable Object> fields(Leak leak) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("site", leak.site());
        fields.put("byteSize", leak.byteSize());
        fields.put("allocated", leak.made());
        fields.put("freed", leak.freed());
        return fields;
    }

    private static @Nullable Long orNull(OptionalLong value) {
        return value.isPresent() ? value.getAsLong() : null;
    }
}
