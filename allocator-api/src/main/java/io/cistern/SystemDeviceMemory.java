package io.cistern;

import io.cistern.cuda.CudaDrivers;
import org.jspecify.annotations.Nullable;

/// Opens the process's own device memory when it is first asked for.
final class SystemDeviceMemory {
    static final DeviceMemory INSTANCE = DeviceMemory.open(CudaDrivers.openBest(), DeviceMemory.discover());

    static {
        Opened.memory = INSTANCE;
    }

    private SystemDeviceMemory() {}

    /// Tells what was opened, without opening it.
    static final class Opened {
        static volatile @Nullable DeviceMemory memory;

        private Opened() {}
    }
}
