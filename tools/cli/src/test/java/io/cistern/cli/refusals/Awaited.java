package io.cistern.cli.refusals;

import io.cistern.cli.refusals.FalseRefusal.Cause;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiPredicate;

/// A kind of false refusal that is known and not mended yet. Whoever mends one takes it off the list.
///
/// @param reason what is at fault
/// @param causes how it shows
/// @param where the programs and requests in which it does
record Awaited(String reason, Set<Cause> causes, BiPredicate<Traffic, FalseRefusal> where) {
    private static final Set<Cause> SERVED = EnumSet.range(Cause.SERVED_AGAIN, Cause.DRIVER_HAS_ENOUGH);

    static final List<Awaited> ALL = List.of(
            new Awaited(
                    "small requests don't use free runs of large blocks, nor large ones those of small blocks",
                    EnumSet.of(Cause.RUN_OF_ITS_STREAM),
                    (_, _) -> true),
            new Awaited(
                    "a pool's initial bytes are asked for without the reclaim steps",
                    SERVED,
                    (_, found) -> found.detail().startsWith("OpenPool")),
            new Awaited("a graph that was closed is gone a moment later", SERVED, has(Step.CloseGraph.class)),
            new Awaited(
                    "limits don't count what is allocated on captured streams",
                    EnumSet.of(Cause.LIMIT_IGNORED),
                    has(Step.BeginCapture.class).or(has(Step.Graph.class))),
            new Awaited("spilling asks once, for the bytes of the request", SERVED, has(Step.Spillable.class)),
            new Awaited(
                    "what the driver gave back by itself is not counted as given",
                    SERVED,
                    (traffic, _) -> traffic.text().contains("release_threshold=zero")),
            new Awaited(
                    "a task rolls back before memory was given back and waited for",
                    SERVED,
                    (traffic, _) -> traffic.inTask()),
            new Awaited(
                    "more initial bytes than are free refuse every request",
                    SERVED,
                    (traffic, _) -> traffic.text().contains("initial_")));

    private static BiPredicate<Traffic, FalseRefusal> has(Class<? extends Step> kind) {
        return (traffic, _) -> traffic.steps().stream().anyMatch(kind::isInstance);
    }

    boolean covers(Traffic program, FalseRefusal found) {
        return causes.contains(found.cause()) && where.test(program, found);
    }
}
