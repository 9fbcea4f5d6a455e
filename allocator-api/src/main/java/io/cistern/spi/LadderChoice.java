package io.cistern.spi;

import io.cistern.diagnostics.LadderStep;
import java.util.Set;

/// Which steps an allocator may take by itself when there is no memory for a request; a plug-in finds it with
/// [AllocatorContext#extension], and takes all of its own where there is none.
///
/// @param steps those that are allowed within the call that allocates
/// @param reclaimsLater whether the framework takes [LadderStep#TRIM] and [LadderStep#SYNCHRONIZE] later, by
///     [Reclaims]: not for what an adaptor is built on, nor for what serves graphs
public record LadderChoice(Set<LadderStep> steps, boolean reclaimsLater) {
    /// Copies the set.
    public LadderChoice {
        steps = Set.copyOf(steps);
    }

    /// All of them within the call.
    public LadderChoice(Set<LadderStep> steps) {
        this(steps, false);
    }
}
