package io.cistern.observability.jmx;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Calls [MemoryBeans#register] if the setting `cistern.observe` names `jmx`.
public final class BeanObserver implements ModuleSupport.Observer {
    /// For [java.util.ServiceLoader].
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
