package io.cistern.internal.routing;

import io.cistern.internal.names.StackRoom;
import org.jetbrains.lincheck.datastructures.ManagedStrategyGuarantee;
import org.jetbrains.lincheck.datastructures.ManagedStrategyGuaranteeKt;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.StressOptions;

/// Runs generated programs of a class's operations, and checks that each result could come from one order of whole
/// operations.
///
/// The model checker tries interleavings one after the other and replays what fails; it takes memory for sequentially
/// consistent. The stress runs use real threads, so that the processor's reorderings and the process-wide fence take
/// part. The property `cistern.stress.long` has three threads in the model checker too, and more programs of both.
public final class Interleavings {
    private static final boolean LONG = Boolean.getBoolean("cistern.stress.long");

    /// What makes a loop endless for the model checker: a walk over a directory of the owner table is none.
    private static final int LOOP_BOUND = 1000;

    /// After so long a program counts as hung. The usual 10 seconds are too few where other work stops this one.
    private static final long HUNG_MILLIS = 180_000;

    /// It calls itself some times, which the model checker takes for an endless loop, and shares nothing.
    private static final ManagedStrategyGuarantee STACK_ROOM = ManagedStrategyGuaranteeKt.forClasses(
                    StackRoom.class.getName())
            .allMethods()
            .ignore();

    private Interleavings() {}

    /// Tries interleavings chosen by the model checker.
    public static void explore(Class<?> model) {
        explore(model, 1);
    }

    /// The same for a model of a few instructions, of which many programs take as long as a few of others.
    ///
    /// @param times how many times as many programs, and interleavings of each
    public static void explore(Class<?> model, int times) {
        new ModelCheckingOptions()
                .iterations((LONG ? 10 : 3) * times)
                .invocationsPerIteration((LONG ? 50 : 10) * times)
                .threads(LONG ? 3 : 2)
                .actorsPerThread(2)
                .actorsBefore(1)
                .actorsAfter(1)
                .loopBound(LOOP_BOUND)
                .addGuarantee(STACK_ROOM)
                .invocationTimeout$lincheck(HUNG_MILLIS)
                .check(model);
    }

    /// Tries what real threads do.
    public static void race(Class<?> model) {
        new StressOptions()
                .iterations(LONG ? 40 : 4)
                .invocationsPerIteration(LONG ? 3000 : 300)
                .threads(3)
                .actorsPerThread(3)
                .actorsBefore(1)
                .actorsAfter(2)
                .invocationTimeout$lincheck(HUNG_MILLIS)
                .check(model);
    }
}
