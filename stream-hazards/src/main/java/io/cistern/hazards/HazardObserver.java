package io.cistern.hazards;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.cuda.CudaDriver;

/// Watches each device memory if the setting `cistern.check` is `streams`: see [StreamHazards].
public final class HazardObserver implements ModuleSupport.Observer {
    /// Creates the observer, for [java.util.ServiceLoader].
    public HazardObserver() {}

    @Override
    public String name() {
        return "streams";
    }

    @Override
    public CudaDriver around(CudaDriver driver) {
        return driver instanceof WatchedDriver ? driver : new WatchedDriver(driver);
    }

    @Override
    public void observe(DeviceMemory memory) {
        StreamHazards.of(memory).ifPresent(hazards -> memory.listeners().onEvent(hazards::follow));
    }
}
