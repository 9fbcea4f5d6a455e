package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;
import jdk.jfr.SettingDefinition;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

@Name("cistern.SlowAllocation")
@Label("Slow Allocation")
@Description("An allocation took at least as long as the threshold")
@StackTrace(true)
final class SlowAllocationEvent extends SegmentEvent {
    @Label("Stream")
    @MemoryAddress
    long stream;

    @Label("Took")
    @Timespan
    long took;

    /// Only declares the setting: the writer of events reads its value directly.
    @SettingDefinition
    @Name("slowerThan")
    @Label("Slower Than")
    @Description("Allocations that took at least this long are recorded")
    boolean isSlower(SlowerThan least) {
        return least.isKnown();
    }
}
