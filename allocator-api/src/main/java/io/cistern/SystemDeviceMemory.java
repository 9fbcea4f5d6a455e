package io.cistern;

import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.Catalog;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Opens the process's own device memory when it is first asked for.
final class SystemDeviceMemory {
    static final DeviceMemory INSTANCE =
            DeviceMemory.open(CudaDrivers.openBest(), Catalog.discover(List.of(), List.of()));

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
