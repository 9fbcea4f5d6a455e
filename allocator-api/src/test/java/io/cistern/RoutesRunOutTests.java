package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// So many limits are in use that no more routes can be opened: what fails for that leaves nothing behind.
final class RoutesRunOutTests {
    private static final int ROUTES = 1 << 16;
    private static final int DEVICES = 31;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(DEVICES).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final List<MemoryLimit> limits = new ArrayList<>();
    private final Plugin plugin = new Plugin();
    private final Allocator allocator = memory.open(OpenOptions.made("plug-in", plugin));

    private static final class Plugin implements DeviceAllocator {
        private int closed;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return 1 << 20;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public void close() {
            closed++;
        }
    }

    /// 65,536 is two more than a multiple of 31.
    @BeforeEach
    void useAllButTwo() {
        for (int used = DEVICES; used + DEVICES <= ROUTES; used += DEVICES) {
            enter();
        }
    }

    private void enter() {
        MemoryLimit limit = MemoryLimit.of("limit " + limits.size(), 1000);
        limits.add(limit);
        try (Scope _ = allocator.enter(ScopeOptions.all().limit(limit))) {
            ScopeCarrier.capture(memory); // else the routes would serve the next limit
        }
    }

    private void assertThatNoneIsLeft(Runnable opening) {
        assertThatIllegalStateException().isThrownBy(opening::run).withMessageStartingWith("more than 65536");
    }

    @AfterEach
    void theAllocatorDrains() {
        assertThat(limits.size()).isEqualTo(ROUTES / DEVICES - 1); // which keeps them in use
        allocator.close();
        assertThat(allocator.isDrained()).isTrue();
        assertThat(plugin.closed).isOne();
        memory.close();
        gpu.close();
    }

    @Test
    void anotherLimitIsRefused() {
        MemoryLimit another = MemoryLimit.of("another", 1000);
        assertThatNoneIsLeft(() -> allocator.enter(ScopeOptions.all().limit(another)));
        assertThatNoneIsLeft(() -> allocator.enter(ScopeOptions.all().limit(another)));
    }

    @Test
    void anotherAllocatorIsRefusedAndClosed() {
        Plugin another = new Plugin();
        assertThatNoneIsLeft(() -> memory.open(OpenOptions.made("another", another)));
        assertThat(another.closed).isOne();
        assertThat(memory.allocators()).containsExactly(allocator);
    }

    /// Of the limits' routes some are replaced by then.
    @Test
    void aFirstLimitIsRefusedAndBlocksAreServedAsBefore() {
        assertThatNoneIsLeft(() -> allocator.limit().setByteSize(500));
        for (int device = 0; device < DEVICES; device++) {
            memory.free(allocator.allocate(600, device, 0), 0);
        }
        for (MemoryLimit limit : limits.subList(0, 3)) {
            try (Scope _ = allocator.enter(ScopeOptions.all().limit(limit))) {
                memory.free(memory.allocate(1000, 0, 0), 0);
            }
        }
    }
}
