package io.cistern.internal.routing;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.process.ProcessFence;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// The current allocator is one register: what a compare-and-set expects, what an allocation finds and what a program
/// is told agree.
@Param(name = "allocator", gen = IntGen.class, conf = "0:1")
public class CurrentModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private final DeviceMemory memory = DeviceMemory.builder(OneDevice.DRIVER)
            .catalog(Catalog.of(List.of(), List.of()))
            .open();
    private final Allocator[] two = {
        memory.open(OpenOptions.made("first", new Addresses(1 << 20, 3))),
        memory.open(OpenOptions.made("second", new Addresses(1 << 21, 3)))
    };

    /// Sets one of the two.
    public CurrentModelTests() {
        memory.currents().set(two[0]);
    }

    @Operation
    public boolean compareAndSet(@Param(name = "allocator") int expected, @Param(name = "allocator") int next) {
        return memory.currents().compareAndSet(0, two[expected], two[next]);
    }

    @Operation
    public void set(@Param(name = "allocator") int next) {
        memory.currents().set(two[next]);
    }

    @Operation
    public int current() {
        return memory.current(0).name().equals(two[0].name()) ? 0 : 1;
    }

    /// Which of the two serves: their addresses tell.
    @Operation
    public int serving() {
        long address = memory.allocate(100, 0, 0);
        memory.free(address, 0);
        return address < 1 << 21 ? 0 : 1;
    }

    @Validate
    public void nothingIsLost() {
        for (Allocator allocator : two) {
            if (allocator.statistics(0).liveBlocks() != 0) {
                throw new AssertionError("live blocks in " + allocator);
            }
        }
    }

    @Test
    void isOneRegisterInEveryInterleaving() {
        Interleavings.explore(CurrentModelTests.class);
    }

    @Test
    void isOneRegisterUnderRealThreads() {
        Interleavings.race(CurrentModelTests.class);
    }
}
