package io.cistern.observability.jfr;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Calls [FlightEvents#register] if the setting `cistern.observe` names `jfr`.
public final class FlightObserver implements ModuleSupport.Observer {
    /// For [java.util.ServiceLoader].
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
