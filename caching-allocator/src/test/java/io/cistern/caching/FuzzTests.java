package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// PyTorch's `test_allocator_fuzz`: blocks of 2 to 20 MiB, of which about 100 MiB are alive, whose contents are
/// verified when they are freed; now and then all that is idle goes back. Here the books are checked too.
final class FuzzTests extends PoolFixture {
    private static final long SEED = 123;
    private static final int STEPS = 10_000;
    private static final long MAX_LIVE = 100 * MIB;
    private static final int STEPS_A_CHECK = 50;
    /// Of 10 allocations, 10 frees, and one that gives back.
    private static final int WEIGHTS = 21;

    private record Block(long address, long byteSize, int word) {}

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final List<Block> live = new ArrayList<>();
    private long liveBytes;

    FuzzTests() {
        super(512 * MIB);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "caching",
                "caching:fit=tight",
                "caching:reuse=never,page_size=2MiB",
                "caching:stable_mapping=true",
                "caching:expandable_segments=false",
                "caching:expandable_segments=false,alignment=4096",
                "caching:splits=false",
                "caching:alignment=2MiB",
            })
    void contentsAndBooksAreRightAfterManyOperations(String spec) {
        try (Allocator caching = memory.open(spec)) {
            for (int step = 0; step < STEPS; step++) {
                int dice = random.nextInt(WEIGHTS);
                if (dice < 10) {
                    allocate(caching, step);
                } else if (dice < 20) {
                    freeAny();
                } else {
                    caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                }
                if (step % STEPS_A_CHECK == 0) {
                    checkBooks(caching);
                }
            }
            while (!live.isEmpty()) {
                freeAny();
            }
            checkBooks(caching);
            caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
        }
    }

    private void allocate(Allocator caching, int word) {
        long byteSize = random.nextLong(2 * MIB, 20 * MIB + 1) & -4;
        if (liveBytes + byteSize <= MAX_LIVE) {
            long address = caching.allocate(byteSize, DEVICE, stream);
            gpu.copies().fillWords(DEVICE, address, word, byteSize / 4, stream);
            live.add(new Block(address, byteSize, word));
            liveBytes += byteSize;
        }
    }

    private void freeAny() {
        if (!live.isEmpty()) {
            Block block = live.remove(random.nextInt(live.size()));
            long anywhere = random.nextLong(block.byteSize / 4) * 4;
            for (long at : new long[] {0, anywhere, block.byteSize - 4}) {
                assertThat(word(block.address + at)).as("seed %d", SEED).isEqualTo(block.word);
            }
            free(block.address);
            liveBytes -= block.byteSize;
        }
    }

    private void checkBooks(Allocator caching) {
        AllocatorStatistics framework = caching.statistics(DEVICE);
        assertThat(framework.requestedBytes()).isEqualTo(liveBytes);
        assertThat(framework.liveBlocks()).isEqualTo(live.size());
        Map<String, Long> figures = caching.memoryStatistics(DEVICE);
        assertThat(figures)
                .containsEntry("requested_bytes.all.current", liveBytes)
                .containsEntry("allocation.all.current", (long) live.size())
                .containsEntry(
                        "reserved_bytes.all.current",
                        gpu.memory().info(DEVICE).totalBytes()
                                - gpu.memory().info(DEVICE).freeBytes());
        long allocated = figures.get("allocated_bytes.all.current");
        assertThat(allocated - liveBytes)
                .isEqualTo(figures.get("rounding_loss_bytes"))
                .isNotNegative();
        assertThat(figures.get("active_bytes.all.current")).isGreaterThanOrEqualTo(allocated);
        assertThat(figures.get("reserved_bytes.all.current"))
                .isGreaterThanOrEqualTo(figures.get("active_bytes.all.current"));
        for (String name : new String[] {"allocation", "allocated_bytes", "reserved_bytes", "requested_bytes"}) {
            long current = figures.get(name + ".all.current");
            assertThat(figures.get(name + ".all.allocated") - figures.get(name + ".all.freed"))
                    .as(name)
                    .isEqualTo(current);
            assertThat(figures.get(name + ".all.peak")).as(name).isGreaterThanOrEqualTo(current);
        }
    }
}
