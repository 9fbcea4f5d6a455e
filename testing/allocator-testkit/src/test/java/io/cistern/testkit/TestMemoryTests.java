package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import org.junit.jupiter.api.Test;

class TestMemoryTests {
    @Test
    void oneLineOpensMemoryThatServesAndWatches() {
        try (DeviceMemory memory = TestMemory.open("direct", 1L << 30)) {
            long block = memory.allocate(1 << 20, 0, 0);
            TestMemory.gpu(memory).keepBusy(0, 0, 1_000_000);
            assertThat(TestMemory.gpu(memory).streams().isIdle(0, 0)).isFalse();
            memory.free(block, 0);
            assertThat(TestMemory.gpu(memory).misuses()).isEmpty();
        }
    }

    @Test
    void anUnknownAllocatorIsRefused() {
        assertThatThrownBy(() -> TestMemory.open("no-such-allocator", 1L << 30))
                .isInstanceOf(ConfigurationException.class);
    }
}
