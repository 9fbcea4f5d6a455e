package io.cistern.caching.internal.shard;

import io.cistern.caching.BlockPlaces;
import io.cistern.caching.OneGpu;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.internal.routing.Interleavings;
import java.util.List;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// Streams find their shards without a lock while others open and end: a table is one map, whoever looks. All keys
/// begin at the same place of it, so that each is looked for behind the others.
@Param(name = "stream", gen = IntGen.class, conf = "0:2")
public final class ShardsModelTests {
    private static final long[] STREAMS = streamsAtOnePlace(3);

    private static final int ROUNDS = 10_000;

    private final Shards table = OneGpu.shards();

    /// Begins with one stream.
    public ShardsModelTests() {
        open(0);
    }

    /// So many handles for which a table of the smallest size is searched from one place on.
    private static long[] streamsAtOnePlace(int count) {
        long[] streams = new long[count];
        int found = 0;
        for (long stream = 256; found < count; stream += 256) {
            if (Shards.slot(stream, Shards.SMALLEST - 1) == Shards.SMALLEST - 1) {
                streams[found++] = stream;
            }
        }
        return streams;
    }

    /// Whether a new one was made.
    @Operation
    public boolean open(@Param(name = "stream") int stream) {
        StreamTimeline own = OneGpu.timeline(STREAMS[stream]);
        Shard shard = OneGpu.open(table, own);
        BlockPlaces.require(shard.key == STREAMS[stream], "a shard of another stream");
        return shard.timeline() == own;
    }

    @Operation
    public boolean find(@Param(name = "stream") int stream) {
        return isOf(table.find(STREAMS[stream], true), stream);
    }

    @Operation
    public boolean end(@Param(name = "stream") int stream) {
        List<Shard> ended = table.remove(STREAMS[stream]);
        return isOf(ended.isEmpty() ? null : ended.getFirst(), stream);
    }

    private static boolean isOf(Shard shard, int stream) {
        BlockPlaces.require(shard == null || shard.key == STREAMS[stream], "a shard of another stream");
        return shard != null;
    }

    @Test
    void isOneMapInEveryInterleaving() {
        Interleavings.explore(ShardsModelTests.class);
    }

    @Test
    void isOneMapUnderRealThreads() {
        Interleavings.race(ShardsModelTests.class);
    }

    /// The same question very often: shards take long to make, so that few of a generated program's calls meet.
    @Test
    void aStreamThatStaysIsFoundWhileOthersComeAndGo() {
        Thread others = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < ROUNDS; i++) {
                open(1);
                open(2);
                end(1);
                end(2);
            }
        });
        do {
            BlockPlaces.require(find(0), "a stream without its shard");
        } while (others.isAlive());
    }
}
