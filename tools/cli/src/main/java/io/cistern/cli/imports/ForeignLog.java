package io.cistern.cli.imports;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// A log of another allocator.
///
/// @param alive blocks that were live when the log ended; those that no event allocated were live
///     before it began
/// @param events in the order in which they happened
/// @param warning what was left out of the file, for people; null if nothing was
record ForeignLog(
        List<ForeignEvent> alive,
        List<ForeignEvent> events,
        @Nullable String warning) {
    ForeignLog(List<ForeignEvent> alive, List<ForeignEvent> events) {
        this(alive, events, null);
    }
}
