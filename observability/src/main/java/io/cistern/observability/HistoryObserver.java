package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;

/// Starts a [MemoryHistory] with stacks if the setting `cistern.observe` names `history`.
public final class HistoryObserver implements ModuleSupport.Observer {
    /// Creates the observer; [java.util.ServiceLoader] calls this.
    public HistoryObserver() {}

    @Override
    public String name() {
        return "history";
    }

    @Override
    public void observe(DeviceMemory memory) {
        MemoryHistory.of(memory).start(HistoryOptions.withStacks());
    }
}
