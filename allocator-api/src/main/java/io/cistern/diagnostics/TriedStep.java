package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import java.io.Serializable;

/// A reclaim step that was tried when memory ran out.
///
/// @param step the step
/// @param byteSize bytes that the step freed or gave back to the driver, as far as they are known
/// @param nanos how long the step took, in nanoseconds of the driver's clock
/// @param note a human-readable remark; usually empty
public record TriedStep(ReclaimStep step, long byteSize, long nanos, String note) implements Serializable {
    /// Creates a step without a remark.
    public TriedStep(ReclaimStep step, long byteSize, long nanos) {
        this(step, byteSize, nanos, "");
    }

    /// Returns the sum of this step and a repetition of it.
    public TriedStep plus(TriedStep more) {
        return new TriedStep(
                step, byteSize + more.byteSize, nanos + more.nanos, more.note.isEmpty() ? note : more.note);
    }

    @Override
    public String toString() {
        return step.text() + ": " + ByteSizes.count(byteSize) + " in " + nanos / 1000 + " µs"
                + (note.isEmpty() ? "" : " (" + note + ")");
    }
}
