package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class NoStreamHazardsTests {
    /// Run by the tests below only.
    @NoStreamHazards
    static final class Candidate {
        private final DeviceMemory memory = TestMemory.open();
        private final long one = memory.driver().streams().create(0);
        private final long other = memory.driver().streams().create(0);

        @AfterEach
        void close() {
            memory.close();
        }

        @Test
        void usesItsOwnMemory() {
            long block = memory.allocate(4096, 0, one);
            memory.driver().copies().fillBytes(0, block, (byte) 0, 4096, one);
            memory.free(block, one);
        }

        @Test
        void doesNotWait() {
            TestMemory.gpu(memory).keepBusy(0, one, 1_000_000);
            long block = memory.allocate(4096, 0, one);
            memory.driver().copies().fillBytes(0, block, (byte) 0, 4096, other);
            memory.free(block, other);
        }
    }

    @Test
    void theTestThatHasAHazardFails() {
        Map<String, Throwable> failed = FailedTests.of(Candidate.class);
        assertThat(failed).containsOnlyKeys("doesNotWait");
        assertThat(failed.get("doesNotWait")).hasMessageContaining("use before allocation");
    }
}
