package io.cistern.hazards;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// A capture, and later its graph: the uses of memory that each launch repeats.
final class Capture {
    record Repeated(Range range, Call call) {}

    final List<Repeated> uses = new ArrayList<>();

    /// The uses that later uses in the capture must follow, by the start of their blocks.
    final Map<Long, List<MemoryUses.Use>> latest = new HashMap<>();
}
