package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.cuda.DriverCall;
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
                memory.open("caching:per_process_memory_fraction=0.1171875,garbage_collection_threshold=0.5,"
                        + "expandable_segments=" + expandable)) {
            long one = caching.allocate(40 * MIB, DEVICE, stream);
            long two = caching.allocate(40 * MIB, DEVICE, stream);
            free(one, two);
            free(caching.allocate(80 * MIB, DEVICE, stream));
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(120 * MIB);
        }
    }

    /// Pages go one by one: as many as are above the threshold, whatever has been idle for how long.
    @Test
    void overTheThresholdIdlePagesGoBackOnceMoreWasObtained() {
        try (Allocator caching = memory.open("caching:garbage_collection_threshold=0.25,page_size=4MiB,reuse=never")) {
            long other = gpu.streams().create(DEVICE);
            memory.free(caching.allocate(300 * MIB, DEVICE, stream), stream);
            assertThat(caching.reservedBytes(DEVICE))
                    .as("until more is obtained")
                    .hasValue(300 * MIB);
            long more = caching.allocate(100 * MIB, DEVICE, other);
            assertThat(caching.reservedBytes(DEVICE))
                    .as("100 MiB came, then what was above 256 MiB went")
                    .hasValue(256 * MIB);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("pages.released", (300L + 100 - 256) / 4)
                    .containsEntry("num_alloc_retries", 0L);
            memory.free(more, other);
        }
    }

    @Test
    void overTheThresholdIdlePagesServeOtherStreamsFirst() {
        try (Allocator caching = memory.open("caching:garbage_collection_threshold=0.25,page_size=4MiB")) {
            long other = gpu.streams().create(DEVICE);
            long kept = caching.allocate(200 * MIB, DEVICE, stream);
            memory.free(caching.allocate(100 * MIB, DEVICE, stream), stream);
            memory.free(caching.allocate(120 * MIB, DEVICE, other), other);
            assertThat(caching.reservedBytes(DEVICE)).hasValue((200 + 120) * MIB);
            assertThat(caching.memoryStatistics(DEVICE))
                    .containsEntry("pages.released", 0L)
                    .containsEntry("pages.taken", 100L / 4);
            memory.free(kept, stream);
        }
    }

    /// If idle pages went before more was obtained, as PyTorch's segments do, each such request would have its pages
    /// given back and buy them again.
    @Test
    void aProgramThatRepeatsOverTheThresholdComesToRest() {
        try (Allocator caching = memory.open("caching:garbage_collection_threshold=0.1")) {
            long other = gpu.streams().create(DEVICE);
            long calls = 0;
            for (int pass = 0; pass < 6; pass++) {
                calls = gpu.calls().of(DriverCall.MEM_CREATE) + gpu.calls().of(DriverCall.MEM_MAP);
                for (long mib = 150; mib < 250; mib += 7) {
                    memory.free(
                            caching.allocate(mib * MIB, DEVICE, mib % 2 == 0 ? stream : other),
                            mib % 2 == 0 ? stream : other);
                }
            }
            assertThat(gpu.calls().of(DriverCall.MEM_CREATE) + gpu.calls().of(DriverCall.MEM_MAP))
                    .isEqualTo(calls);
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isLessThan(260 * MIB);
        }
    }

    @Test
    void pagesThatWorkMayStillUseStayOverTheThreshold() {
        try (Allocator caching = memory.open("caching:garbage_collection_threshold=0.25,page_size=4MiB,reuse=never")) {
            long other = gpu.streams().create(DEVICE);
            long busy = caching.allocate(300 * MIB, DEVICE, stream);
            for (int i = 0; i < 100; i++) {
                gpu.copies().fillBytes(DEVICE, busy, (byte) i, 300 * MIB, stream);
            }
            memory.free(busy, stream);
            long more = caching.allocate(100 * MIB, DEVICE, other);
            assertThat(caching.reservedBytes(DEVICE)).hasValue((300 + 100) * MIB);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("waits.host", 0L);
            memory.free(more, other);
        }
    }

    @Test
    void noPageWithALiveBlockGoesBackOverTheThreshold() {
        try (Allocator caching = memory.open("caching:garbage_collection_threshold=0.01,page_size=2MiB")) {
            long[] kept = new long[8];
            for (int i = 0; i < kept.length; i++) {
                long between = caching.allocate(5 * MIB, DEVICE, stream);
                kept[i] = caching.allocate(3 * MIB, DEVICE, stream);
                gpu.copies().fillBytes(DEVICE, kept[i], (byte) i, 3 * MIB, stream);
                free(between);
            }
            free(caching.allocate(200 * MIB, DEVICE, stream));
            for (int i = 0; i < kept.length; i++) {
                assertThat(word(kept[i] + 3 * MIB - 4)).isEqualTo(0x01010101 * i);
            }
            free(kept);
        }
    }

    private static void assertRefused(Allocator caching, long byteSize) {
        assertThatThrownBy(() -> caching.allocate(byteSize, DEVICE, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("per_process_memory_fraction");
    }
}
