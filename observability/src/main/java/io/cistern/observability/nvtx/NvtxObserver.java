package io.cistern.observability.nvtx;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Calls [NvtxRanges#register] if the setting `cistern.observe` names `nvtx`.
public final class NvtxObserver implements ModuleSupport.Observer {
    /// Creates the observer; [java.util.ServiceLoader] calls this.
    public NvtxObserver() {}

    @Override
    public String name() {
        return "nvtx";
    }

    @Override
    public void observe(DeviceMemory memory) {
        NvtxRanges.register(memory);
    }
}
