package io.cistern;

import io.cistern.cuda.CudaDrivers;

/// Opens the process's own device memory when it is first asked for.
final class SystemDeviceMemory {
    static final DeviceMemory INSTANCE = DeviceMemory.open(CudaDrivers.openBest(), DeviceMemory.discover());

    private SystemDeviceMemory() {}
}
