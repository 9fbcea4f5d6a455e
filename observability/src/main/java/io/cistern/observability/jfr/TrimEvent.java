package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

@Name("cistern.Trim")
@Label("Trim")
@Description("An allocator gave idle memory back to the driver because it was asked to")
@StackTrace(true)
final class TrimEvent extends CisternEvent {
    @Label("Bytes to Keep")
    @DataAmount
    long keepBytes;

    @Label("Waited")
    @Description("Whether it waited for running work")
    boolean waited;

    @Label("Bytes Returned")
    @DataAmount
    long returnedBytes;

    @Label("Took")
    @Timespan
    long took;
}
