package io.cistern;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.tuple;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.OutOfMemoryReport.AllocatorMemory;
import io.cistern.diagnostics.OutOfMemoryReport.ProcessMemory;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.diagnostics.UnusableMemory.Reason;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What the report of a refused request advises, by the sizes of the device and of idle memory.
final class OutOfMemoryAdviceTests {
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 256 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private long idleBytes;
    private List<UnusableMemory> unusable = List.of();
    private final Allocator allocator = memory.open(OpenOptions.made("full", new Full()));

    /// Refuses each request.
    private class Full implements DeviceAllocator, MemoryStatistics {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new DeviceOutOfMemoryException(byteSize, device, "");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(idleBytes);
        }

        @Override
        public List<UnusableMemory> unusable(int device) {
            return unusable;
        }
    }

    /// Serves each request by the driver.
    private class Plain implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            gpu.memory().free(device, address);
        }
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void aRefusalWithoutADetailHasAnEmptyOne() {
        assertThat(new DeviceOutOfMemoryException(1, 0, null))
                .hasMessage("out of memory on device 0: 1 byte requested")
                .returns("", DeviceOutOfMemoryException::detail);
    }

    @Test
    void theTextOfManyAllocatorsNamesThoseWithTheMost() {
        List<Long> live = new ArrayList<>();
        for (int i = 1; i <= 100; i++) {
            live.add(memory.open(OpenOptions.made("number " + i, new Plain())).allocate(i * MIB / 64, 0, 0));
        }
        OutOfMemoryReport report = refused(CAPACITY);
        assertThat(report.allocators()).hasSize(101);
        assertThat(report.text().lines())
                .filteredOn(line -> line.startsWith("full:") || line.startsWith("number "))
                .hasSize(9)
                .startsWith("full: 0 bytes reserved, 0 bytes requested in 0 live blocks, largest free block unknown")
                .element(1, as(InstanceOfAssertFactories.STRING))
                .startsWith("number 100: unknown reserved, ");
        long others = MIB / 64 * (92 * 93 / 2);
        assertThat(report.text().lines())
                .contains("and 92 other allocators and pools with " + ByteSizes.exact(others) + " in all");
        live.forEach(block -> memory.free(block, 0));
    }

    @Test
    void theLengthOfTheTextIsBounded() {
        List<StreamMemory> streams = thousand(i -> new StreamMemory(i, i, i));
        OutOfMemoryReport report = new OutOfMemoryReport(
                1,
                0,
                0,
                OptionalLong.of(0),
                OptionalLong.of(CAPACITY),
                thousand(i -> new AllocatorMemory("pool " + i, "tag", OptionalLong.of(i), i, 1, 0, streams)),
                thousand(i -> new UnusableMemory(Reason.OTHER_ALLOCATOR, i, "in pool " + i, "")),
                List.of(),
                thousand(i -> new ProcessMemory(i, OptionalLong.of(i))),
                List.of());
        assertThat(report.text())
                .hasSizeLessThan(10_000)
                .endsWith("and 992 other processes with " + ByteSizes.exact(991 * 992 / 2) + " in all");
    }

    private static <T> List<T> thousand(IntFunction<T> of) {
        return IntStream.range(0, 1000).mapToObj(of).toList();
    }

    private OutOfMemoryReport refused(long byteSize) {
        return catchThrowableOfType(DeviceOutOfMemoryException.class, () -> allocator.allocate(byteSize, 0, 0))
                .report()
                .orElseThrow();
    }

    @Test
    void onlyARequestForMoreThanTheDeviceHasIsToBeSplit() {
        assertThat(refused(CAPACITY + 1).advice())
                .containsExactly("the request is larger than the device's memory: split it");
        assertThat(refused(CAPACITY).advice()).noneMatch(each -> each.contains("split"));
    }

    @Test
    void memoryIsExhaustedIfLessIsFreeAndIdleThanWasAskedFor() {
        long library = gpu.memory().allocate(0, CAPACITY / 2);
        long free = gpu.memory().freeBytes(0);
        idleBytes = MIB;
        assertThat(refused(free + MIB).advice()).isEmpty();
        assertThat(refused(free + MIB + 1).advice())
                .containsExactly("memory is exhausted: only " + ByteSizes.exact(free + MIB) + " is free or idle");
        gpu.memory().free(0, library);
    }

    @Test
    void idleMemoryInPiecesIsToldWithTheSettingsThatHelp() {
        idleBytes = 10 * MIB;
        String pieces = "full has enough idle memory, but in pieces that are too small";
        assertThat(refused(10 * MIB + 1).advice())
                .as("of a device that has plenty")
                .containsExactly(
                        "the device has enough free memory, so full itself refused the request: free its blocks, or"
                                + " check its options");
        assertThat(refused(10 * MIB).advice()).containsExactly(pieces);
        unusable = List.of(
                new UnusableMemory(Reason.WAITING, 5 * MIB, "", "wait"),
                new UnusableMemory(Reason.BESIDE_LIVE_BLOCKS, 4 * MIB, "stream 0x1", ""),
                new UnusableMemory(Reason.BESIDE_LIVE_BLOCKS, 3 * MIB, "stream 0x2", "fit=tight"),
                new UnusableMemory(Reason.IDLE_ELSEWHERE, 2 * MIB, "stream 0x3", "source=pages"),
                new UnusableMemory(Reason.IDLE_ELSEWHERE, MIB, "stream 0x4", "fit=tight"));
        OutOfMemoryReport report = refused(10 * MIB);
        assertThat(report.unusable()).isEqualTo(unusable);
        assertThat(report.advice()).containsExactly(pieces + ": fit=tight; source=pages");
    }

    @Test
    void theRefusingAllocatorIsFirstAndOthersAreToldByTheirIdleBytes() {
        Allocator before = memory.open(OpenOptions.made("nothing", new Full() {
            @Override
            public OptionalLong reservedBytes(int device) {
                return OptionalLong.of(0);
            }
        }));
        memory.open(OpenOptions.made("idle", new Full()));
        Allocator last = memory.open(OpenOptions.made("last", new Full()));
        idleBytes = 5 * MIB;
        unusable = List.of(new UnusableMemory(Reason.WAITING, MIB, "", ""));
        OutOfMemoryReport report = catchThrowableOfType(
                        DeviceOutOfMemoryException.class, () -> last.allocate(CAPACITY, 0, 0))
                .report()
                .orElseThrow();
        assertThat(report.allocators())
                .extracting(OutOfMemoryReport.AllocatorMemory::name)
                .startsWith("last")
                .contains(before.toString());
        assertThat(report.unusable())
                .extracting(UnusableMemory::holder, UnusableMemory::byteSize, UnusableMemory::remedy)
                .containsExactly(tuple("in full", 5 * MIB, ""), tuple("in idle", 5 * MIB, ""), tuple("", MIB, ""));
    }

    @Test
    void whoHoldsTheMostIsNamed() {
        try (Allocator weights = memory.open(OpenOptions.made("weights", new Plain()))) {
            long held = weights.allocate(CAPACITY / 2, 0, 0);
            DeviceOutOfMemoryException refused = catchThrowableOfType(
                    DeviceOutOfMemoryException.class, () -> allocator.allocate(CAPACITY * 3 / 4, 0, 0));
            assertThat(refused).hasMessageContaining(", and weights holds " + ByteSizes.exact(CAPACITY / 2));
            OutOfMemoryReport report = refused.report().orElseThrow();
            assertThat(report.largestHolder().orElseThrow().name()).contains("weights");
            assertThat(report.advice())
                    .contains("free blocks of weights, which holds the most: " + ByteSizes.exact(CAPACITY / 2));
            assertThat(report.text().lines().toList().get(2)).startsWith("advice: ");
            Allocator telling = memory.open(OpenOptions.made("telling", new Full() {
                @Override
                public long allocate(long byteSize, int device, long stream) {
                    throw new DeviceOutOfMemoryException(byteSize, device, "the device has 1 of 2 bytes free");
                }
            }));
            assertThatThrownBy(() -> telling.allocate(MIB, 0, 0))
                    .hasMessageEndingWith(
                            "; the device has 1 of 2 bytes free, and weights holds " + ByteSizes.exact(CAPACITY / 2));
            memory.free(held, 0);
        }
    }

    @Test
    void aRequestForMoreThanTheDeviceHasSaysSo() {
        assertThat(catchThrowableOfType(DeviceOutOfMemoryException.class, () -> allocator.allocate(2 * CAPACITY, 0, 0)))
                .hasMessageEndingWith("the device has " + ByteSizes.exact(CAPACITY) + " in all");
    }
}
