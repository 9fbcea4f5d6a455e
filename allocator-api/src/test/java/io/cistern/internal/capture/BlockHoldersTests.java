package io.cistern.internal.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// Which graphs keep a block.
final class BlockHoldersTests {
    private static final long BLOCK = 1 << 20;

    private final Router router = new Router();
    private final BlockHolders holders = new BlockHolders(router);

    private static final class OneBlock implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return BLOCK;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }

    @Test
    void theFirstOfTwoThatKeepABlockIsNamed() {
        Route route = router.routes().open("one", 0, new OneBlock(), null, () -> {});
        router.allocate(route, 100, 0);
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            Captures captures = memory.moduleSupport().attached(Captures.class).orElseThrow();
            GraphBlocks first = captures.newMemory();
            assertThat(holders.keep(BLOCK, first)).isTrue();
            assertThat(holders.keep(BLOCK, captures.newMemory())).isFalse();
            assertThat(holders.keeper(BLOCK)).isSameAs(first);
            holders.revive(BLOCK);
            assertThat(holders.keeper(BLOCK)).isNull();
        }
        router.free(BLOCK, 0);
    }
}
