package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

@Name("cistern.CurrentChanged")
@Label("Current Allocator Changed")
@Description("Another allocator became current on a device")
@StackTrace(true)
final class CurrentChangedEvent extends CisternEvent {
    @Label("Former Allocator")
    @Nullable
    String former;
}
