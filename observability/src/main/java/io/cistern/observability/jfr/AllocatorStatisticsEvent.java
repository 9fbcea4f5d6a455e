package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import org.jspecify.annotations.Nullable;

@Name("cistern.AllocatorStatistics")
@Label("Allocator Statistics")
@Description("The memory of an allocator on a device")
@Period("1 s")
final class AllocatorStatisticsEvent extends CisternEvent {
    @Label("Pool")
    @Description("The tag of the pool that it belongs to")
    @Nullable
    String pool;

    @Label("Requested")
    @DataAmount
    long requestedBytes;

    @Label("Requested, Peak")
    @DataAmount
    long requestedPeakBytes;

    @Label("Reserved")
    @DataAmount
    long reservedBytes;

    @Label("Largest Free Block")
    @DataAmount
    long largestFreeBytes;

    @Label("Stranded")
    @Description("Idle or waiting bytes kept for the stream that used them")
    @DataAmount
    long strandedBytes;

    @Label("Live Blocks")
    long liveBlocks;

    @Label("Allocations")
    long allocations;

    @Label("Frees")
    long frees;
}
