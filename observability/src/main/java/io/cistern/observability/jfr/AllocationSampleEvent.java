package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;
import jdk.jfr.SettingDefinition;
import jdk.jfr.StackTrace;

@Name("cistern.AllocationSample")
@Label("Allocation Sample")
@Description("An allocation that stands for all that the thread allocated since the sample before")
@StackTrace(true)
final class AllocationSampleEvent extends SegmentEvent {
    @Label("Stream")
    @MemoryAddress
    long stream;

    @Label("Weight")
    @Description("Bytes since the sample before: the sum over all samples is about what was allocated")
    @DataAmount
    long weight;

    /// The writer of events reads the setting, not this method.
    @SettingDefinition
    @Name("interval")
    @Label("Interval")
    @Description("Bytes between two samples of a thread")
    boolean isDue(SampleInterval interval) {
        return interval.isKnown();
    }
}
