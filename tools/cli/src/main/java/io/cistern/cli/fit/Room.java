package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recorder.Reserved;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.simulated.SimulatedGpu;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/// The memory that allocators may take of a device.
///
/// @param why where the number comes from, for people
record Room(long byteSize, String why) {
    /// Returns what the recorded program had when its last request was refused: what its allocator held, and what
    /// the device had free. If that were enough for the request, a limit refused it, which is nowhere recorded;
    /// then it is the maximum that the allocator held.
    ///
    /// @return empty if nothing was refused, or the recording does not say, as one without times may not
    static Optional<Room> of(Recording recording) {
        if (recording.refusals().isEmpty()) {
            return Optional.empty();
        }
        Refusal refusal = recording.refusals().getLast();
        Recorder recorder = recording.recorder();
        long device = recording.ordinals()[0];
        OptionalLong held = recorder.reservedBytes(device, recording.nanos()[refusal.row()]);
        if (held.isEmpty() || refusal.freeBytes() < 0 || isHeldUnknown(recording, device)) {
            return Optional.empty();
        }
        if (refusal.freeBytes() >= refusal.byteSize()) {
            return Optional.of(new Room(
                    possible(recorder.reservedPeakBytes(device).orElseThrow()),
                    "the maximum that " + recorder.name() + " held: " + ByteSize.format(refusal.freeBytes())
                            + " of the device were free, so a limit refused the request; --capacity sets how much"));
        }
        return Optional.of(new Room(
                possible(held.getAsLong() + refusal.freeBytes()),
                ByteSize.format(held.getAsLong()) + " that " + recorder.name() + " held at the refusal, and the "
                        + ByteSize.format(refusal.freeBytes()) + " that were free"));
    }

    /// Returns whether the allocator held different amounts in a recording without times, such as those of PyTorch
    /// before 2.2: which of them it held at the refusal is nowhere recorded.
    private static boolean isHeldUnknown(Recording recording, long device) {
        return LongStream.of(recording.nanos()).allMatch(nanos -> nanos == 0)
                && recording.recorder().reserved().stream()
                                .filter(each -> each.device() == device && each.nanos() == 0)
                                .map(Reserved::byteSize)
                                .distinct()
                                .count()
                        > 1;
    }

    /// A damaged file may tell any number.
    private static long possible(long byteSize) {
        return Math.clamp(byteSize, 1, SimulatedGpu.MAX_CAPACITY_BYTES);
    }
}
