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

    static TrimResult trim(DeviceCache cache, long keepBytes, TrimMode mode) {
        boolean wait = mode == TrimMode.SYNCHRONIZE;
        cache.threadCaches.empty(cache.shards.all()); // so that their blocks don't count as in use
        long returned = cache.returns.trim(keepBytes, wait);
        if (cache.growth.asleepBytes() > 0) {
            return left(cache, returned);
        }
        Reason ofWhole =
                cache.counters.reservedBytes() <= keepBytes ? Reason.KEPT : wait ? Reason.REFUSED : Reason.IN_FLIGHT;
        CacheTrim trim = new CacheTrim();
        for (Shard shard : cache.shards.all()) {
            trim.add(cache.shards.survey(shard), ofWhole);
        }
        return trim.result(cache, returned);
    }

    /// Reports the memory that a sleeping cache still has.
    static TrimResult left(DeviceCache cache, long returned) {
        CacheTrim trim = new CacheTrim();
        trim.add(Reason.PINNED, OptionalLong.empty(), cache.counters.reservedBytes() - cache.growth.refusedBytes());
        return trim.result(cache, returned);
    }

    private TrimResult result(DeviceCache cache, long returned) {
        add(Reason.REFUSED, OptionalLong.empty(), cache.growth.refusedBytes());
        return new TrimResult(returned, OptionalLong.of(cache.counters.reservedBytes()), left);
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
