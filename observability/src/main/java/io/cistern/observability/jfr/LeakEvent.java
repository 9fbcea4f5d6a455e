package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

@Name("cistern.Leak")
@Label("Leak")
@Description("Blocks that one place in the program allocated and that are still live")
final class LeakEvent extends CisternEvent {
    @Label("Site")
    @Description("The frames that allocated them, the innermost first; empty if the leak level does not record them")
    @Nullable
    String site;

    @Label("Blocks")
    long blocks;

    @Label("Size")
    @DataAmount
    long byteSize;

    @Label("Oldest Age")
    @Timespan(Timespan.MILLISECONDS)
    long oldestAge;
}
