package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

@Name("cistern.ReclaimStep")
@Label("Reclaim Step")
@Description("A request found no memory, and Cistern tried a step to free some")
final class ReclaimStepEvent extends CisternEvent {
    @Label("Requested Size")
    @DataAmount
    long byteSize;

    @Label("Step")
    @Nullable
    String step;

    @Label("Bytes Reclaimed")
    @Description("As far as the step knows")
    @DataAmount
    long reclaimedBytes;

    @Label("Took")
    @Timespan
    long took;
}
