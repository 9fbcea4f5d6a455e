package io.cistern.cli.fit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.Plugins;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceRows;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PlayerTests {
    private static final int CALLS = 1500;
    private static final long MIB = 1L << 20;
    private static final int NEXT_SIZES = 4;

    /// The programs of seeds 2 and 23 are ones that halving alone gets wrong: pytorch-native serves them on a device,
    /// and refuses on the next but one.
    @ParameterizedTest
    @CsvSource({
        "2, caching",
        "2, async",
        "2, direct",
        "2, pytorch-native",
        "2, pytorch-expandable",
        "19, pytorch-native",
        "23, pytorch-native"
    })
    void theSmallestDeviceIsBetweenOnesThatRefuseAndServe(long seed, String spec) {
        Trace trace = drawn(seed);
        Player player = new Player(trace, spec, Plugins.catalog());
        long step = Player.step(trace);

        long smallest =
                player.smallestBytes(player.reservedPeakBytes().orElseThrow()).orElseThrow();

        assertThat(player.failures(smallest - step)).isNotEmpty();
        assertThat(LongStream.rangeClosed(0, NEXT_SIZES).map(size -> smallest + size * step))
                .allSatisfy(byteSize -> assertThat(player.failures(byteSize)).isEmpty());
    }

    /// Returns a program whose blocks live for a drawn time: many small ones, some of 20 to 80 MiB, on two streams.
    private static Trace drawn(long seed) {
        Random random = new Random(seed);
        TraceRows rows = new TraceRows();
        List<Long> live = new ArrayList<>();
        List<Long> sizes = new ArrayList<>();
        long liveBytes = 0;
        for (int call = 0; call < CALLS; call++) {
            boolean grows = random.nextInt(100) < (liveBytes < 500 * MIB ? 65 : 40);
            if (grows || live.isEmpty()) {
                long byteSize = random.nextInt(3) == 0
                        ? 20 * MIB + random.nextInt((int) (60 * MIB))
                        : 1 + random.nextInt((int) (3 * MIB));
                rows.allocate(sizes.size(), byteSize, 0, random.nextInt(2));
                live.add((long) sizes.size());
                sizes.add(byteSize);
                liveBytes += byteSize;
            } else {
                long freed = live.remove(random.nextInt(live.size()));
                rows.free(freed, 0, 0);
                liveBytes -= sizes.get((int) freed);
            }
        }
        Recorder recorder = Recorder.UNKNOWN;
        return rows.recording("drawn", new CallStacks(), recorder).trace().onOneThread();
    }
}
