package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import java.nio.file.Path;

/// Writes [snapshots][OutOfMemorySnapshots#writeTo] of up to three refused requests to the working
/// directory, if the setting `cistern.observe` names `snapshots`.
public final class SnapshotObserver implements ModuleSupport.Observer {
    private static final int MAX_FILES = 3;

    /// Creates the observer; [java.util.ServiceLoader] calls this.
    public SnapshotObserver() {}

    @Override
    public String name() {
        return "snapshots";
    }

    @Override
    public void observe(DeviceMemory memory) {
        OutOfMemorySnapshots.writeTo(memory, Path.of(""), MAX_FILES);
    }
}
