package io.cistern.handles;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// The events of the flight recorder. A pool never starts the recorder; only a recording does.
@Category({"Cistern", "Library Handles"})
@StackTrace(false)
abstract class HandleEvent extends Event {
    @Label("Library")
    @Nullable
    String library;

    @Label("Device")
    @Description("The device's ordinal")
    int device;

    @Name("cistern.HandleCreated")
    @Label("Library Handle Created")
    @Description("A library created a handle; the duration is the library's")
    static final class Created extends HandleEvent {}

    @Name("cistern.HandleWait")
    @Label("Library Handle Wait")
    @Description("A thread waited for a library handle, because all handles that the pool may have were in use")
    @StackTrace(true)
    static final class Wait extends HandleEvent {}

    final void commit(String ofLibrary, int onDevice) {
        library = ofLibrary;
        device = onDevice;
        commit();
    }
}
