package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.TestContext;
import io.cistern.caching.internal.base.SplitPolicy;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ShardsTests {
    private final Shards table = new Shards(SplitPolicy.ANY, new AtomicLong(), TestContext.counters());

    @Test
    void aStreamKeepsItsShardWhileOthersComeAndGo() {
        Shard shard = open(0);
        for (long stream = 256; stream < 256 * 500; stream += 256) {
            open(stream);
        }
        for (long stream = 256; stream < 256 * 500; stream += 512) {
            table.remove(stream);
        }
        assertThat(table.find(0, true)).isSameAs(shard);
        assertThat(open(0)).isSameAs(shard);
        assertThat(table.all()).hasSize(250);
    }

    private Shard open(long stream) {
        return table.open(TestContext.timeline(stream), true, () -> null);
    }

    @Test
    void aStreamWithoutMemoryHasNoShard() {
        assertThat(table.find(42, true)).isNull();
        assertThat(table.remove(42)).isEmpty();
    }

    @Test
    void aStreamHasAShardForSmallBlocksAndOneForLargeOnes() {
        Shard large = table.open(TestContext.timeline(512), false, () -> null);
        Shard small = open(512);
        Shard other = open(256);
        assertThat(table.find(512, true)).isSameAs(small);
        assertThat(table.find(512, false)).isSameAs(large);
        assertThat(table.find(256, false)).isNull();
        assertThat(table.of(512)).containsExactly(small, large);
        assertThat(table.all()).hasSize(3).endsWith(large);
        assertThat(table.remove(512)).containsExactly(small, large);
        assertThat(table.of(512)).isEmpty();
        assertThat(table.all()).containsExactly(other);
        assertThat(open(512)).isNotSameAs(small);
    }

    @Test
    void whatAnEndedStreamLeftIsTakenOverOnce() {
        Shard left =
                new Shard(TestContext.timeline(768), true, SplitPolicy.ANY, new AtomicLong(), TestContext.counters());
        assertThat(table.open(TestContext.timeline(768), true, () -> {
                    table.enter(left);
                    return left;
                }))
                .isSameAs(left);
        assertThat(open(768)).isSameAs(left);
        assertThat(table.all()).containsExactly(left);
    }
}
