package io.cistern.caching;

import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.ShardSurvey;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// Gives back one device's idle memory, and then reports for each shard which memory stayed and why.
///
/// `Σ left = reserved`, if no thread allocates meanwhile and no live bytes wait on the host. Each byte of a shard
/// is in use, waits for another stream, is idle beside a block in use, or is idle in a whole page or segment. The
/// last kind stayed because it was to be kept, because its stream was not known to have finished, or because the
/// driver refused it.
final class CacheTrim {
    private final List<Left> left = new ArrayList<>();

    private CacheTrim() {}

    static TrimResult trim(CacheParts parts, CacheReturns returns, long keepBytes, TrimMode mode) {
        boolean wait = mode == TrimMode.SYNCHRONIZE;
        parts.emptyThreadCaches(); // so that their blocks don't count as in use
        long returned = returns.trim(keepBytes, wait);
        if (parts.asleepBytes() > 0) {
            return left(parts, returned);
        }
        Reason ofWhole = parts.reserved().bytes() <= keepBytes ? Reason.KEPT : wait ? Reason.REFUSED : Reason.IN_FLIGHT;
        CacheTrim trim = new CacheTrim();
        for (Shard shard : parts.allShards()) {
            trim.add(parts.shards().survey(shard), ofWhole);
        }
        return trim.result(parts, returned);
    }

    /// Reports the memory that a sleeping cache still has.
    static TrimResult left(CacheParts parts, long returned) {
        CacheTrim trim = new CacheTrim();
        trim.add(
                Reason.PINNED,
                OptionalLong.empty(),
                parts.reserved().bytes() - parts.growth().refusedBytes());
        return trim.result(parts, returned);
    }

    private TrimResult result(CacheParts parts, long returned) {
        add(Reason.REFUSED, OptionalLong.empty(), parts.growth().refusedBytes());
        return new TrimResult(returned, OptionalLong.of(parts.reserved().bytes()), left);
    }

    private void add(ShardSurvey shard, Reason ofWhole) {
        OptionalLong stream = shard.stream();
        add(Reason.IN_USE, stream, shard.liveBytes());
        add(Reason.USED_BY_OTHER_STREAM, stream, shard.waitingBytes());
        add(Reason.SHARED_WITH_USED, stream, shard.sharedBytes());
        add(ofWhole, stream, shard.returnableBytes());
    }

    private void add(Reason reason, OptionalLong stream, long byteSize) {
        if (byteSize > 0) {
            left.add(new Left(reason, stream, byteSize));
        }
    }
}
