package io.cistern.observability.jfr;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Calls [FlightEvents#register] if the setting `cistern.observe` names `jfr`.
public final class FlightObserver implements ModuleSupport.Observer {
    /// Creates the observer; [java.util.ServiceLoader] calls this.
    public FlightObserver() {}

    @Override
    public String name() {
        return "jfr";
    }

    @Override
    public void observe(DeviceMemory memory) {
        FlightEvents.register(memory);
    }
}
