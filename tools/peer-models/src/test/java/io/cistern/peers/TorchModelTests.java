package io.cistern.peers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.TestMemory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What PyTorch's documentation and source say of its allocator.
class TorchModelTests {
    private static final long MIB = 1L << 20;
    private static final int DEVICE = 0;

    private final DeviceMemory memory = TestMemory.open("direct", 200 * MIB);
    private final CudaDriver gpu = TestMemory.gpu(memory);
    private long stream;

    @BeforeEach
    void makeAStream() {
        stream = gpu.streams().create(DEVICE);
    }

    @AfterEach
    void close() {
        gpu.streams().destroy(DEVICE, stream);
        memory.close();
    }

    @Test
    void segmentsHaveThreeSizes() {
        try (Allocator torch = memory.open("pytorch-native")) {
            List<Long> reserved = new ArrayList<>();
            List<Long> blocks = new ArrayList<>();
            for (long byteSize : List.of(1L, MIB, MIB + 1, 9 * MIB, 10 * MIB, 21 * MIB)) {
                blocks.add(torch.allocate(byteSize, DEVICE, stream));
                reserved.add(torch.reservedBytes(DEVICE).orElseThrow() / MIB);
            }

            assertThat(reserved).containsExactly(2L, 2L, 22L, 22L, 32L, 54L);
            free(blocks);
        }
    }

    @Test
    void aLargeBlockKeepsARemainderOfAMebibyte() {
        try (Allocator torch = memory.open("pytorch-native")) {
            long first = torch.allocate(20 * MIB, DEVICE, stream);
            memory.free(first, stream);

            long second = torch.allocate(19 * MIB, DEVICE, stream);
            long third = torch.allocate(2 * MIB, DEVICE, stream);

            assertThat(second).isEqualTo(first);
            assertThat(torch.reservedBytes(DEVICE)).hasValue(40 * MIB);
            free(List.of(second, third));
        }
    }

    @Test
    void aStreamsFreeBlockServesNoOtherStream() {
        try (Allocator torch = memory.open("pytorch-native")) {
            long other = gpu.streams().create(DEVICE);
            memory.free(torch.allocate(30 * MIB, DEVICE, stream), stream);

            memory.free(torch.allocate(30 * MIB, DEVICE, other), other);

            assertThat(torch.reservedBytes(DEVICE)).hasValue(60 * MIB);
            gpu.streams().destroy(DEVICE, other);
        }
    }

    @Test
    void whatTheDriverRefusesIsTriedAgainWithoutTheCache() {
        try (Allocator torch = memory.open("pytorch-native")) {
            memory.free(torch.allocate(120 * MIB, DEVICE, stream), stream);

            long block = torch.allocate(130 * MIB, DEVICE, stream);

            assertThat(torch.reservedBytes(DEVICE)).hasValue(130 * MIB);
            memory.free(block, stream);
        }
    }

    /// Of 160 MiB, all is freed but 1.5 MiB in each segment.
    @Test
    void aBlockKeepsItsSegmentFromTheDriver() {
        try (Allocator torch = memory.open("pytorch-native")) {
            List<Long> kept = new ArrayList<>();
            List<Long> freed = new ArrayList<>();
            for (int segment = 0; segment < 8; segment++) {
                freed.add(torch.allocate(9 * MIB + MIB / 2, DEVICE, stream));
                kept.add(torch.allocate(MIB + MIB / 2, DEVICE, stream));
                freed.add(torch.allocate(9 * MIB, DEVICE, stream));
            }
            free(freed);

            assertThatThrownBy(() -> torch.allocate(60 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(torch.reservedBytes(DEVICE)).hasValue(160 * MIB);
            free(kept);
        }
    }

    @Test
    void whatIsFreeAtItsEndGrowsInAnExpandableSegment() {
        try (Allocator torch = memory.open("pytorch-expandable")) {
            long first = torch.allocate(15 * MIB, DEVICE, stream);
            memory.free(first, stream);

            long second = torch.allocate(25 * MIB, DEVICE, stream);

            assertThat(second).isEqualTo(first);
            assertThat(torch.reservedBytes(DEVICE)).hasValue(40 * MIB);
            memory.free(second, stream);
        }
    }

    /// Blocks lie in the first and the third page; the second goes back to the driver, and a new one comes after them.
    @Test
    void wholePagesOfHolesGoBackToTheDriver() {
        try (Allocator torch = memory.open("pytorch-expandable")) {
            long low = torch.allocate(15 * MIB, DEVICE, stream);
            long hole = torch.allocate(30 * MIB, DEVICE, stream);
            long high = torch.allocate(15 * MIB, DEVICE, stream);
            memory.free(hole, stream);

            torch.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);

            assertThat(torch.reservedBytes(DEVICE)).hasValue(40 * MIB);
            free(List.of(low, high));
        }
    }

    @Test
    void anExpandableSegmentGrowsByPages() {
        try (Allocator torch = memory.open("pytorch-expandable")) {
            List<Long> blocks = new ArrayList<>();
            List<Long> reserved = new ArrayList<>();
            for (long byteSize : List.of(1L, 15 * MIB, 15 * MIB, 30 * MIB)) {
                blocks.add(torch.allocate(byteSize, DEVICE, stream));
                reserved.add(torch.reservedBytes(DEVICE).orElseThrow() / MIB);
            }

            assertThat(reserved).containsExactly(2L, 22L, 42L, 62L);
            assertThat(blocks.get(2)).isEqualTo(blocks.get(1) + 15 * MIB);
            free(blocks);
        }
    }

    @Test
    void closingGivesAllBack() {
        long before = gpu.memory().freeBytes(DEVICE);
        for (String spec : List.of("pytorch-native", "pytorch-expandable")) {
            try (Allocator torch = memory.open(spec)) {
                free(List.of(torch.allocate(MIB, DEVICE, stream), torch.allocate(50 * MIB, DEVICE, stream)));
            }
            assertThat(gpu.memory().freeBytes(DEVICE)).as(spec).isEqualTo(before);
        }
    }

    private void free(List<Long> blocks) {
        blocks.forEach(block -> memory.free(block, stream));
    }
}
