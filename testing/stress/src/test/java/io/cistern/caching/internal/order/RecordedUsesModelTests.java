package io.cistern.caching.internal.order;

import io.cistern.caching.BlockPlaces;
import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// Uses of blocks on a stream that ends meanwhile, and on another: a free learns of each, and from the end on by what
/// the end is known by, unless the handle came again.
@Param(name = "block", gen = IntGen.class, conf = "1:2")
public class RecordedUsesModelTests {
    private static final long ENDING = 7;
    private static final long OTHER = 9;
    private static final long END = -99;

    private final RecordedUses uses = new RecordedUses();
    /// Odd while the stream has ended and was not used again.
    private final AtomicInteger ends = new AtomicInteger();

    /// Begins with blocks that the stream uses.
    public RecordedUsesModelTests() {
        uses.add(1, ENDING);
        uses.add(2, ENDING);
    }

    /// By its own thread: a stream is used before it ends, or when its handle has come again.
    @Operation(nonParallelGroup = "ending")
    public void use(@Param(name = "block") int block) {
        if (ends.get() % 2 != 0) {
            ends.incrementAndGet();
        }
        uses.add(block, ENDING);
    }

    @Operation(nonParallelGroup = "ending")
    public void end() {
        uses.replace(ENDING, () -> END);
        if (ends.get() % 2 == 0) {
            ends.incrementAndGet();
        }
    }

    @Operation
    public void useOnOther(@Param(name = "block") int block) {
        uses.add(block, OTHER);
    }

    /// Whether it was used on the stream that ends, and on the other one.
    @Operation
    public String free(@Param(name = "block") int block) {
        int before = ends.get();
        boolean ending = false;
        boolean other = false;
        for (long key : uses.take(block)) {
            BlockPlaces.require(
                    key != ENDING || before % 2 == 0 || ends.get() != before, "a stream that has ended, by its handle");
            ending |= key == ENDING || key == END;
            other |= key == OTHER;
        }
        return ending + " " + other;
    }

    @Test
    void noUseIsLostInAnyInterleaving() {
        Interleavings.explore(RecordedUsesModelTests.class, 5);
    }

    @Test
    void noUseIsLostUnderRealThreads() {
        Interleavings.race(RecordedUsesModelTests.class);
    }
}
