package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What PyTorch's own tests ask of limits and of the collection of idle memory, on a simulated GPU of 1 GiB.
final class PyTorchBehaviourTests extends PoolFixture {
    private static final long TOTAL = 1L << 30;
    private static final long HALF = TOTAL / 2;

    PyTorchBehaviourTests() {
        super(TOTAL);
    }

    /// `test_set_per_process_memory_fraction`.
    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void underAHalfAlmostAHalfServesAndMoreDoesNot(String expandable) {
        try (Allocator caching =
                memory.open("caching:per_process_memory_fraction=0.5,expandable_segments=" + expandable)) {
            free(caching.allocate(TOTAL / 1000 * 499, DEVICE, stream));
            caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertRefused(caching, HALF + 1);
            long small = caching.allocate(512, DEVICE, stream);
            assertRefused(caching, HALF);
            free(small);
            free(caching.allocate(HALF, DEVICE, stream));
        }
    }

    @Test
    void theWholeFractionIsWhatTheDriverGives() {
        try (Allocator caching = memory.open("caching:per_process_memory_fraction=1.0")) {
            free(caching.allocate(TOTAL, DEVICE, stream));
        }
    }

    @Test
    void aRequestThatIsServedIsNoRejection() {
        try (Allocator caching = memory.open("caching:per_process_memory_fraction=0.01,throw_on_cudamalloc_oom=true")) {
            assertRefused(caching, TOTAL);
            long small = caching.allocate(10 * 10 * Float.BYTES, DEVICE, stream);
            assertRejections(caching, 1);
            assertRefused(caching, TOTAL);
            assertRejections(caching, 2);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("num_alloc_retries", 0L);
            free(small);
        }
    }

    @Test
    void withoutTheOptionReachingTheFractionIsOutOfMemory() {
        try (Allocator caching =
                memory.open("caching:per_process_memory_fraction=0.01,throw_on_cudamalloc_oom=false")) {
            assertRefused(caching, TOTAL);
            assertRejections(caching, 0);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("num_ooms", 1L)
                    .containsEntry("num_alloc_retries", 1L);
        }
    }

    private static void assertRejections(Allocator caching, long count) {
        assertThat(caching.memoryStatistics(DEVICE)).containsEntry("num_oom_rejections", count);
    }

    /// `test_garbage_collect_expandable`, which has 120 MiB, and segments and pages in one allocator.
    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void underACapWhatIsIdleGivesWayToALargerBlock(String expandable) {
        try (Allocator caching =
                memory.open("caching:per_process_memory_fraction=0.1171875,expandable_segments=" + expandable)) {
            long one = caching.allocate(40 * MIB, DEVICE, stream);
            long two = caching.allocate(40 * MIB, DEVICE, stream);
            free(one, two);
            free(caching.allocate(80 * MIB, DEVICE, stream));
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(120 * MIB);
        }
    }

    private static void assertRefused(Allocator caching, long byteSize) {
        assertThatThrownBy(() -> caching.allocate(byteSize, DEVICE, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("per_process_memory_fraction");
    }
}
