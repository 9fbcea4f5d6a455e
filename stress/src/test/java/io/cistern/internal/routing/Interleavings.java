package io.cistern.internal.routing;

import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.StressOptions;

/// Runs generated programs of a class's operations, and checks that each result could come from one order of whole
/// operations.
///
/// The model checker tries interleavings one after the other and replays what fails; it takes memory for sequentially
/// consistent. The stress runs use real threads, so that the processor's reorderings and the process-wide fence take
/// part. The property `cistern.stress.scale` multiplies both.
public final class Interleavings {
    private static final int SCALE = Integer.getInteger("cistern.stress.scale", 1);

    /// What makes a loop endless for the model checker: a walk over a directory of the owner table is none.
    private static final int LOOP_BOUND = 1000;

    private Interleavings() {}

    /// Tries interleavings chosen by the model checker.
    public static void explore(Class<?> model) {
        new ModelCheckingOptions()
                .iterations(4 * SCALE)
                .invocationsPerIteration(15 * SCALE)
                .threads(2)
                .actorsPerThread(2)
                .actorsBefore(1)
                .actorsAfter(1)
                .loopBound(LOOP_BOUND)
                .check(model);
    }

    /// Tries what real threads do.
    public static void race(Class<?> model) {
        new StressOptions()
                .iterations(4 * SCALE)
                .invocationsPerIteration(300 * SCALE)
                .threads(3)
                .actorsPerThread(3)
                .actorsBefore(1)
                .actorsAfter(2)
                .check(model);
    }
}
