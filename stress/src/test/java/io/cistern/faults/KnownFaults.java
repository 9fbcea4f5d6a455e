package io.cistern.faults;

import java.util.Set;

/// Methods whose allocations still leave something wrong when they fail. Shrinks to nothing.
final class KnownFaults {
    private static final String ROUTING = """
            io.cistern.internal.context.EventOrder.keep
            io.cistern.internal.routing.Budget.charge
            io.cistern.internal.routing.Budgets.<init>
            io.cistern.internal.routing.Budgets.detach
            io.cistern.internal.routing.Budgets.lambda$new$0
            io.cistern.internal.routing.Budgets.of
            io.cistern.internal.routing.Lanes.sum
            io.cistern.internal.routing.Router.adopt
            io.cistern.internal.routing.Routes.retire
            """;

    private static final String ASYNC = """
            io.cistern.async.FencedBatch.<init>
            io.cistern.async.FencedBatch.add
            io.cistern.async.GraphAllocations.free
            io.cistern.async.LaterFrees.add
            io.cistern.async.LaterFrees.join
            io.cistern.async.LaterFrees.lambda$queue$0
            io.cistern.async.LaterFrees.pass
            io.cistern.async.LaterFrees.queue
            io.cistern.async.LaterFrees.takeOut
            io.cistern.async.RecordedUses.take
            io.cistern.async.RefusedFrees.free
            """;

    static final Set<String> METHODS = Set.of((ROUTING + ASYNC).split("\n"));

    private KnownFaults() {}
}
