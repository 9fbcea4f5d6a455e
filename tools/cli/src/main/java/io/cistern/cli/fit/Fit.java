package io.cistern.cli.fit;

import static io.cistern.cli.common.ResultWriter.object;
import static io.cistern.cli.common.ResultWriter.orNull;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.fit.Holders.Holder;
import io.cistern.cli.fit.Holders.Moment;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Leaks;
import io.cistern.cli.trace.Leaks.Leak;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.simulated.SimulatedGpu;
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
/// @param refused when its last request was refused; empty if none was
/// @param servedPeakBytes the most bytes that the recorded program had at once
record Fit(
        Recording recording,
        Optional<Room> room,
        Moment peak,
        Optional<Moment> refused,
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
    Map<String, @Nullable Object> fields(String file) {
        return object(
                "file", file,
                "recorder", recording.recorder().name(),
                "devices", recording.ordinals(),
                "operations", recording.recordedOperations(),
                "olderBlocks", recording.recorder().olderBlocks(),
                "settingsNotFollowed", UnfollowedSettings.of(recording.recorder()),
                "requestedPeakBytes", peak.requestedBytes(),
                "servedPeakBytes", servedPeakBytes,
                "recordedReservedPeakBytes", orNull(recordedBytes()),
                "capacityBytes", room.map(Room::byteSize).orElse(null),
                "refused", recording.refusals().stream().map(this::fields).toList(),
                "allocators", answers.stream().map(this::fields).toList(),
                "peakHolders", peak.holders().stream().map(Fit::fields).toList(),
                "leaks",
                        leaks.unknown().isEmpty()
                                ? leaks.found().stream().map(Fit::fields).toList()
                                : null);
    }

    private Map<String, @Nullable Object> fields(Refusal refusal) {
        long freeBytes = refusal.then().freeBytes();
        return object(
                "byteSize",
                refusal.byteSize(),
                "nanos",
                recording.nanos()[refusal.row()],
                "deviceFreeBytes",
                freeBytes < 0 ? null : freeBytes,
                "site",
                recording.callStacks().site(recording.stacks()[refusal.row()]));
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
        return object(
                "site", holder.site(),
                "byteSize", holder.byteSize(),
                "blocks", holder.blocks());
    }

    private static Map<String, @Nullable Object> fields(Leak leak) {
        return object(
                "site", leak.site(),
                "byteSize", leak.byteSize(),
                "allocated", leak.made(),
                "freed", leak.freed());
    }

    /// The memory that allocators may take of a device.
    ///
    /// @param why where the number comes from, for people
    record Room(long byteSize, String why) {
        /// Returns what the recorded program had when its last request was refused: what its allocator held,
        /// and what the device had free. If that were enough for the request, a limit refused it, which is
        /// nowhere recorded; then it is the maximum that the allocator held.
        ///
        /// @return empty if nothing was refused, or the recording does not say
        static Optional<Room> of(Recording recording) {
            if (recording.refusals().isEmpty()) {
                return Optional.empty();
            }
            Refusal refusal = recording.refusals().getLast();
            long freeBytes = refusal.then().freeBytes();
            long heldBytes = refusal.then().reservedBytes();
            if (freeBytes < 0 || heldBytes < 0) {
                return Optional.empty();
            }
            Recorder recorder = recording.recorder();
            if (freeBytes >= recorder.driverBytes(refusal.byteSize())) {
                return Optional.of(new Room(
                        possible(recorder.reservedPeakBytes(recording.ordinals()[0])
                                .orElse(heldBytes)),
                        "the maximum that " + recorder.name() + " held: " + ByteSize.format(freeBytes)
                                + " of the device were free, so a limit refused the request; --capacity sets another"
                                + " amount"));
            }
            return Optional.of(new Room(
                    possible(heldBytes + freeBytes),
                    ByteSize.format(heldBytes) + " that " + recorder.name() + " held at the refusal, and the "
                            + ByteSize.format(freeBytes) + " that were free"));
        }

        /// A damaged file may tell any number.
        private static long possible(long byteSize) {
            return Math.clamp(byteSize, 1, SimulatedGpu.MAX_CAPACITY_BYTES);
        }
    }
}
