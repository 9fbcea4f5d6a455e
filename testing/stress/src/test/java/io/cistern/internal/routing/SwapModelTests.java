package io.cistern.internal.routing;

import io.cistern.DeviceMemory;
import io.cistern.cuda.process.ProcessFence;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// A swap fails no allocation, and each allocator that was swapped out ends, once, when its last block is gone.
public class SwapModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private final List<Addresses> opened = new ArrayList<>();
    private final DeviceMemory memory = DeviceMemory.builder(OneDevice.DRIVER)
            .catalog(Catalog.of(List.of(new Provider("odd"), new Provider("even")), List.of()))
            .open();

    /// Begins with one allocator.
    public SwapModelTests() {
        memory.setCurrent("even");
    }

    @Operation
    public void setOdd() {
        memory.setCurrent("odd");
    }

    @Operation
    public void setEven() {
        memory.setCurrent("even");
    }

    /// An allocation and its free, which the old allocator or the new one serves.
    @Operation
    public void pair() {
        memory.free(memory.allocate(100, 0, 0), 0);
    }

    @Validate
    public void theCurrentOneAloneIsLeft() {
        int open = 0; // without streams: the model checker looks into all that they call
        for (Addresses each : opened) {
            open += each.isClosed() ? 0 : 1;
        }
        if (open != 1 || memory.allocators().size() != 1) {
            throw new AssertionError(open + " allocators are open");
        }
    }

    @Test
    void losesNothingInEveryInterleaving() {
        Interleavings.explore(SwapModelTests.class);
    }

    @Test
    void losesNothingUnderRealThreads() {
        Interleavings.race(SwapModelTests.class);
    }

    /// Each allocator that it opens has addresses of its own.
    private final class Provider implements AllocatorProvider {
        private final String name;

        Provider(String name) {
            this.name = name;
        }

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) { // one at a time: the lock of what is current is held
            Addresses next = new Addresses((1L + opened.size()) << 20, 3);
            opened.add(next);
            return next;
        }
    }
}
