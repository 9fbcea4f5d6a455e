package io.cistern.async;

import io.cistern.cuda.PoolAttribute;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// Gives idle memory of one device's pools back, and reports which memory stayed and why.
///
/// The driver reports only reserved and used bytes, so the reasons for the rest are deduced. If the target is
/// reached, the memory was kept on purpose. If the trim waited for all work, the memory shares a page with a
/// block in use. Otherwise its free is assumed to be incomplete, though some of it may share pages too.
///
/// While the host waits, the driver itself gives back what is above the release threshold; that counts as
/// returned. `Σ left = reserved`, if nobody allocates meanwhile.
final class PoolTrim {
    private PoolTrim() {}

    static TrimResult trim(AsyncDevice device, long keepBytes, TrimMode mode) {
        long held = device.pools.sum(PoolAttribute.RESERVED_CURRENT);
        boolean waited = mode == TrimMode.SYNCHRONIZE && device.pools.all().length > 0 && device.synchronize();
        long byDriver = Math.max(0, held - device.pools.sum(PoolAttribute.RESERVED_CURRENT));
        long returned = byDriver + trim(device, keepBytes);
        long reserved = device.pools.sum(PoolAttribute.RESERVED_CURRENT);
        long used = Math.min(reserved, device.pools.sum(PoolAttribute.USED_CURRENT));
        long waiting = Math.min(used, device.later.waitingBytes());
        List<Left> left = new ArrayList<>();
        add(left, Reason.IN_USE, used - waiting);
        add(left, Reason.USED_BY_OTHER_STREAM, waiting);
        Reason ofRest = waited ? Reason.SHARED_WITH_USED : Reason.IN_FLIGHT;
        add(left, reserved <= keepBytes ? Reason.KEPT : ofRest, reserved - used);
        return new TrimResult(returned, OptionalLong.of(reserved), left);
    }

    private static void add(List<Left> left, Reason reason, long byteSize) {
        if (byteSize > 0) {
            left.add(new Left(reason, OptionalLong.empty(), byteSize));
        }
    }

    /// Gives back idle memory, pool after pool, until at most `keepBytes` are reserved; waits for nothing. It
    /// also gives back memory that an adaptive threshold no longer holds and, if `keepBytes` is 0, memory that
    /// the driver keeps for graphs.
    static long trim(AsyncDevice device, long keepBytes) {
        device.later.freePassed();
        long returned = device.pools.giveBackUnheld();
        long excess = device.pools.sum(PoolAttribute.RESERVED_CURRENT) - keepBytes;
        for (DriverPool pool : device.pools.all()) {
            long went = pool.giveBack(excess);
            returned += went;
            excess -= went;
        }
        if (keepBytes == 0) {
            returned += device.trimGraphs();
        }
        device.events.trims.increment();
        device.events.trimmedBytes.add(returned);
        return returned;
    }
}
