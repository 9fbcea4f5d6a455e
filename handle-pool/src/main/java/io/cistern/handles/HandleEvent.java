package io.cistern.handles;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// The common fields of the events of library handles.
@Category({"Cistern", "Library Handles"})
@StackTrace(false)
abstract class HandleEvent extends Event {
    @Label("Library")
    @Nullable
    String library;

    @Label("Device")
    @Description("The device's ordinal")
    int device;
}
