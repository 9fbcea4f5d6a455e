package io.cistern.observability.jmx;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Calls [MemoryBeans#register] if the setting `cistern.observe` names `jmx`.
public final class BeanObserver implements ModuleSupport.Observer {
    /// Creates the observer; [java.util.ServiceLoader] calls this.
    public BeanObserver() {}

    @Override
    public String name() {
        return "jmx";
    }

    @Override
    public void observe(DeviceMemory memory) {
        MemoryBeans.register(memory);
    }
}
