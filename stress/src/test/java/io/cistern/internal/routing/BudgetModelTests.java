package io.cistern.internal.routing;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// A limit is exact in every interleaving: never exceeded, and nothing that fits is refused.
@Param(name = "bytes", gen = IntGen.class, conf = "1:3")
public class BudgetModelTests {
    private final Budget budget = new Budget(4);

    @Operation
    public boolean take(@Param(name = "bytes") int byteSize) {
        return budget.tryTake(byteSize);
    }

    @Operation
    public void giveBack(@Param(name = "bytes") int byteSize) {
        budget.giveBack(byteSize);
    }

    @Operation
    public String usage() {
        return budget.toString();
    }

    @Test
    void isExactInEveryInterleaving() {
        Interleavings.explore(BudgetModelTests.class);
    }

    @Test
    void isExactUnderRealThreads() {
        Interleavings.race(BudgetModelTests.class);
    }
}
