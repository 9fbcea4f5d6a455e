package io.cistern.cli.imports;

import io.cistern.cli.common.Content;
import io.cistern.cli.common.InputException;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A log of another allocator.
///
/// @param alive blocks that were live when the log ended; those that no event allocated were live
///     before it began
/// @param events in the order in which they happened
/// @param segments the memory of the allocator when the log ended; empty if the log does not say
/// @param recorder what it says of the allocator; its count of older blocks is not known yet
/// @param warning what was left out of the file, for people; null if nothing was
record ForeignLog(
        List<ForeignEvent> alive,
        List<ForeignEvent> events,
        List<Segment> segments,
        CallStacks callStacks,
        Recorder recorder,
        @Nullable String warning) {
    /// Reads a snapshot of PyTorch's or a log of RMM's.
    ///
    /// @param in with marks
    /// @throws InputException if the file is neither, or has impossible values
    static ForeignLog read(String name, InputStream in) throws InputException, IOException {
        return switch (Content.of(in)) {
            case PICKLE -> TorchLog.of(name, TorchSnapshot.read(name, in));
            case RMM_LOG -> RmmLog.read(name, in);
            case Content other ->
                throw other.error(name, "a PyTorch snapshot, nor an RMM log with the columns " + Content.RMM_COLUMNS);
        };
    }
}
