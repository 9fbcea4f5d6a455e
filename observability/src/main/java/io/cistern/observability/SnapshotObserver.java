package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import java.nio.file.Path;

/// Calls [OutOfMemorySnapshots#writeTo] for up to three refusals, in the working folder, if the
/// setting `cistern.observe` names `snapshots`.
public final class SnapshotObserver implements ModuleSupport.Observer {
    private static final int MAX_FILES = 3;

    /// For [java.util.ServiceLoader].
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
