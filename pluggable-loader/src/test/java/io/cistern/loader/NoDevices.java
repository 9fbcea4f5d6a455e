package io.cistern.loader;

import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;

/// A machine without devices.
record NoDevices() implements DeviceEnvironment {
    @Override
    public boolean simulated() {
        return true;
    }

    @Override
    public int driverVersion() {
        return 13_000;
    }

    @Override
    public int deviceCount() {
        return 0;
    }

    @Override
    public String name(int device) {
        throw new IndexOutOfBoundsException(device);
    }

    @Override
    public long totalBytes(int device) {
        throw new IndexOutOfBoundsException(device);
    }

    @Override
    public long freeBytes(int device) {
        throw new IndexOutOfBoundsException(device);
    }

    @Override
    public Availability memoryPools(int device) {
        throw new IndexOutOfBoundsException(device);
    }

    @Override
    public Availability virtualMemory(int device) {
        throw new IndexOutOfBoundsException(device);
    }
}
