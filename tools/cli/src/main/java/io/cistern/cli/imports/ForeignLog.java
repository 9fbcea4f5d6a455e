package io.cistern.cli.imports;

import java.util.List;

/// A log of another allocator.
///
/// @param alive blocks that were live when the log ended; those that no event allocated were live
///     before it began
/// @param events in the order in which they happened
record ForeignLog(List<ForeignEvent> alive, List<ForeignEvent> events) {}
