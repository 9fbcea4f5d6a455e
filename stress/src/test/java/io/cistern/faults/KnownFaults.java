package io.cistern.faults;

import java.util.Set;

/// Methods whose allocations still leave something wrong when they fail. Shrinks to nothing.
final class KnownFaults {
    private static final String ROUTING = """
            io.cistern.internal.order.EventOrder.keep
            io.cistern.internal.routing.Budget.charge
            io.cistern.internal.routing.Budgets.<init>
            io.cistern.internal.routing.Budgets.detach
            io.cistern.internal.routing.Budgets.lambda$new$0
            io.cistern.internal.routing.Budgets.of
            io.cistern.internal.routing.Lanes.sum
            io.cistern.internal.routing.Router.adopt
            io.cistern.internal.routing.Routes.retire
            """;

    static final Set<String> METHODS = Set.of(ROUTING.split("\n"));

    private KnownFaults() {}
}
