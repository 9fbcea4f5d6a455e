package io.cistern.hazards;

import java.util.ArrayList;
import java.util.List;

/// A capture, and later its graph: the uses of memory that each launch repeats.
final class Capture {
    /// A use that a launch repeats.
    record Repeated(Range range, StreamHazard.Place place) {}

    final List<Repeated> uses = new ArrayList<>();
}
