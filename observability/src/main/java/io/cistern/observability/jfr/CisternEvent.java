package io.cistern.observability.jfr;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// Holds the fields that all events of allocators share.
@Category({"Cistern", "Device Memory"})
@StackTrace(false)
abstract class CisternEvent extends Event {
    @Label("Allocator")
    @Description("The allocator's spec, or the pool's name")
    @Nullable
    String allocator;

    @Label("Device")
    @Description("The device's ordinal")
    int device;
}
