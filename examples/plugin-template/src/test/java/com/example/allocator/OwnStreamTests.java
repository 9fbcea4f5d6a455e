package com.example.allocator;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.testkit.TestMemory;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/// The handle 2 names another stream on each thread.
class OwnStreamTests {
    private static final long OWN = 2;
    private static final long BYTES = 1 << 20;

    @Test
    void aThreadGetsNoBlockThatAnotherOneFreedOnItsOwnStream() {
        try (DeviceMemory memory = TestMemory.open("shelf", 1L << 30)) {
            long freed = memory.allocate(BYTES, 0, OWN);
            memory.free(freed, OWN);
            long elsewhere = CompletableFuture.supplyAsync(() -> memory.allocate(BYTES, 0, OWN))
                    .join();
            long here = memory.allocate(BYTES, 0, OWN);
            assertThat(elsewhere).isNotEqualTo(freed);
            assertThat(here).isEqualTo(freed);
            memory.free(elsewhere, OWN);
            memory.free(here, OWN);
        }
    }
}
