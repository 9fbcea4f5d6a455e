package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.Streams;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.diagnostics.UnusableMemory.Reason;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/// A refused request tells which bytes could not be used, and why, the most first.
final class UnusableMemoryTests extends ReclaimFixture {
    private final List<Long> live = new ArrayList<>();

    private OutOfMemoryReport refused(DeviceMemory memory, long byteSize) {
        DeviceOutOfMemoryException failure =
                catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(byteSize, DEVICE, stream));
        live.forEach(address -> memory.free(address, stream));
        live.clear();
        return failure.report().orElseThrow();
    }

    private static Map<Reason, Long> byReason(OutOfMemoryReport report) {
        return report.unusable().stream()
                .collect(Collectors.groupingBy(
                        UnusableMemory::reason, Collectors.summingLong(UnusableMemory::byteSize)));
    }

    /// Every second of seven blocks stays.
    private void fragment(DeviceMemory memory, long byteSize) {
        List<Long> gaps = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            (i % 2 == 1 ? gaps : live).add(memory.allocate(byteSize, DEVICE, stream));
        }
        gaps.forEach(address -> memory.free(address, stream));
    }

    @Test
    void gapsInSegmentsLieBesideLiveBlocks() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching:source=linear");
        fragment(memory, 30 * MIB);
        OutOfMemoryReport report = refused(memory, 150 * MIB);
        assertThat(report.unusable()).first().satisfies(most -> {
            assertThat(most.reason()).isEqualTo(Reason.BESIDE_LIVE_BLOCKS);
            assertThat(most.byteSize()).isBetween(90 * MIB, 110 * MIB);
            assertThat(most.holder()).isEqualTo("stream 0x" + Long.toHexString(stream));
            assertThat(most.remedy()).contains("source=pages");
        });
        assertThat(report.text()).containsPattern("unusable: \\d+ bytes idle next to live blocks, stream 0x");
    }

    @Test
    void aStreamHasOneNameInAllLines() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching:source=linear");
        for (long handle : new long[] {0, Streams.LEGACY_DEFAULT}) {
            live.add(memory.allocate(30 * MIB, DEVICE, handle));
            assertThat(refused(memory, 240 * MIB).text())
                    .contains("the legacy default stream: ")
                    .doesNotContain("stream 0x0", "stream 0x1");
        }
    }

    @Test
    void gapsInPagesNameTheSettingThatSwitchesCompactionOff() {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("caching:compaction_bytes=0,page_size=64MiB");
        fragment(memory, 30 * MIB);
        OutOfMemoryReport report = refused(memory, 100 * MIB);
        assertThat(report.unusable()).first().satisfies(most -> {
            assertThat(most.reason()).isEqualTo(Reason.BESIDE_LIVE_BLOCKS);
            assertThat(most.byteSize()).isBetween(90 * MIB, 136 * MIB);
            assertThat(most.remedy()).contains("page_size");
        });
    }

    @Test
    void piecesSmallerThanAPageAreToldApart() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        fragment(memory, 3 * MIB);
        OutOfMemoryReport report = refused(memory, 250 * MIB);
        assertThat(byReason(report).get(Reason.SMALLER_THAN_A_PAGE)).isBetween(1L, 9 * MIB);
    }

    @Test
    void aPageOfAGraphSaysSo() {
        GpuContext context = new GpuContext(gpu);
        CachingAllocator caching = context.open(PageReuse.WAIT, false);
        long block = caching.allocate(128 * MIB, DEVICE, stream);
        caching.pin(DEVICE, block, 128 * MIB, Page.Pin.CAPTURED);
        caching.free(block, 128 * MIB, DEVICE, stream);
        assertThat(caching.unusable(DEVICE))
                .singleElement()
                .satisfies(each -> assertThat(each.reason()).isEqualTo(Reason.CAPTURED))
                .satisfies(each -> assertThat(each.byteSize()).isEqualTo(128 * MIB));
        caching.unpinAll(Page.Pin.CAPTURED);
        caching.close();
    }

    @Test
    void freedBlocksThatWorkMayUseWait() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        long block = memory.allocate(64 * MIB, DEVICE, stream);
        gpu.keepBusy(DEVICE, other, TimeUnit.SECONDS.toNanos(100));
        memory.recordUse(block, other);
        memory.free(block, stream);
        OutOfMemoryReport report = refused(memory, 250 * MIB);
        assertThat(byReason(report)).containsEntry(Reason.WAITING, 64 * MIB);
    }

    @Test
    void idleMemoryOfAPoolThatDoesNotLendIsNamed() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        try (MemoryPool small = MemoryPool.builder(memory).tag("small").open();
                MemoryPool pool = MemoryPool.builder(memory).tag("weights").open();
                MemoryPool empty = MemoryPool.builder(memory).tag("empty").open()) {
            memory.free(small.allocate(20 * MIB, DEVICE, stream), stream);
            memory.free(pool.allocate(100 * MIB, DEVICE, stream), stream);
            OutOfMemoryReport report = refused(memory, 200 * MIB);
            assertThat(empty.reservedBytes(DEVICE)).hasValue(0);
            assertThat(report.unusable()).hasSize(2).first().satisfies(most -> {
                assertThat(most.reason()).isEqualTo(Reason.OTHER_ALLOCATOR);
                assertThat(most.byteSize()).isEqualTo(100 * MIB);
                assertThat(most.remedy()).contains("lendsToOthers");
            });
        }
    }

    @Test
    void roundingIsAReasonToo() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching:alignment=2MiB");
        live.add(memory.allocate(65 * MIB, DEVICE, stream));
        assertThat(byReason(refused(memory, 200 * MIB))).containsEntry(Reason.ROUNDING, MIB);
    }

    @Test
    void nothingIsUnusableWhereNothingIsIdle() {
        DeviceMemory memory = open(Set.of());
        memory.setCurrent("caching");
        live.add(memory.allocate(200 * MIB, DEVICE, stream));
        assertThat(refused(memory, 100 * MIB).unusable()).isEmpty();
    }
}
