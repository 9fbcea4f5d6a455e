package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageReuse;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What slack is for: the more may be reserved over the peak of live bytes, the fewer pages have to move. Programs that
/// need the same memory in two places in turns move all of it each time, without slack.
class SlackTest {
    private static final long MIB = 1L << 20;
    private static final double[] SLACKS = {0, 0.1, 0.25, 0.5, 0.75, 1};
    private static final int CYCLES = 200;
    private static final long LIVE_BYTES = 80 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final long first = gpu.streams().create(0);
    private final long second = gpu.streams().create(0);

    @AfterEach
    void nothingWasMisused() {
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(1L << 30);
        gpu.close();
    }

    /// What a program does over and over.
    private interface Cycle {
        void run(GpuContext context, CachingAllocator caching);
    }

    /// What is bought stays where it is, up to one half: pages that are still mapped where they are wanted come back
    /// instead of new ones.
    @Test
    void moreSlackMovesFewerPagesBetweenStreams() {
        List<Long> moved = moved((context, caching) -> {
            blocks(context, caching, 20 * MIB, first);
            blocks(context, caching, 20 * MIB, second);
        });
        for (int i = 0; i < SLACKS.length; i++) {
            assertShare(moved, i, Math.max(1 - SLACKS[i], 0.5));
        }
    }

    /// Middle blocks of a stream that is not the first lie apart from large ones.
    @Test
    void moreSlackMovesFewerPagesInsideAStream() {
        List<Long> moved = moved((context, caching) -> {
            blocks(context, caching, 20 * MIB, second);
            blocks(context, caching, 8 * MIB, second);
        });
        for (int i = 0; i < SLACKS.length; i++) {
            assertShare(moved, i, 1 - SLACKS[i]);
        }
    }

    /// Of what moves without slack, but for the cycles until pages were earned.
    private static void assertShare(List<Long> moved, int i, double share) {
        double most = moved.getFirst();
        assertThat(moved.get(i) / most).as("slack %s", SLACKS[i]).isBetween(share - 0.01, share + 0.01);
    }

    private List<Long> moved(Cycle cycle) {
        List<Long> moved = new ArrayList<>();
        for (double slack : SLACKS) {
            GpuContext context = new GpuContext(gpu);
            CachingAllocator caching = context.open(PageReuse.WAIT, slack, false);
            blocks(context, caching, LIVE_BYTES, first);
            for (int i = 0; i < CYCLES; i++) {
                cycle.run(context, caching);
            }
            assertThat(caching.reservedBytes(0).orElseThrow())
                    .as("slack %s", slack)
                    .isBetween(LIVE_BYTES, (long) (LIVE_BYTES * (1 + slack)));
            caching.close();
            moved.add(context.movedBytes / MIB);
        }
        return moved;
    }

    private static void blocks(GpuContext context, CachingAllocator caching, long byteSize, long stream) {
        long[] live = new long[(int) (LIVE_BYTES / byteSize)];
        for (int i = 0; i < live.length; i++) {
            live[i] = context.allocate(caching, byteSize, stream);
        }
        for (long address : live) {
            context.free(caching, address, stream);
        }
    }
}
