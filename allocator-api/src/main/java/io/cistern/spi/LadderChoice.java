package io.cistern.spi;

import io.cistern.LadderStep;
import java.util.Set;

/// Which steps an allocator may take when there is no memory for a request; a plug-in finds it with
/// [AllocatorContext#extension], and takes all of its own where there is none.
///
/// @param steps those that are allowed
public record LadderChoice(Set<LadderStep> steps) {
    /// Copies the set.
    public LadderChoice {
        steps = Set.copyOf(steps);
    }
}
