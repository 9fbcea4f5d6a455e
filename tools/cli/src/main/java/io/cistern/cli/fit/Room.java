package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.simulated.SimulatedGpu;
import java.util.Optional;

/// The memory that allocators may take of a device.
///
/// @param why where the number comes from, for people
record Room(long byteSize, String why) {
    /// Returns what the recorded program had when its last request was refused: what its allocator held, and what
    /// the device had free. If that were enough for the request, a limit refused it, which is nowhere recorded;
    /// then it is the maximum that the allocator held.
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
        if (freeBytes >= refusal.byteSize()) {
            return Optional.of(new Room(
                    possible(recorder.reservedPeakBytes(recording.ordinals()[0]).orElse(heldBytes)),
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
