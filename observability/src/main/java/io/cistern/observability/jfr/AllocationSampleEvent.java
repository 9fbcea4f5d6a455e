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
@Description("An allocation that represents all that its thread allocated since the previous sample")
@StackTrace(true)
final class AllocationSampleEvent extends SegmentEvent {
    @Label("Stream")
    @MemoryAddress
    long stream;

    @Label("Weight")
    @Description("Bytes since the previous sample; the weights of all samples add up to about the bytes allocated")
    @DataAmount
    long weight;

    /// Only declares the setting: the writer of events reads its value directly.
    @SettingDefinition
    @Name("interval")
    @Label("Interval")
    @Description("Bytes between two samples of a thread")
    boolean isDue(SampleInterval interval) {
        return interval.isKnown();
    }
}
