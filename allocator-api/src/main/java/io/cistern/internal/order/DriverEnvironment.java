package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.Support;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;

/// Describes the devices of a driver to plug-ins.
public final class DriverEnvironment implements DeviceEnvironment {
    private final CudaDriver driver;
    private final int deviceCount;

    public DriverEnvironment(CudaDriver driver) {
        this.driver = driver;
        this.deviceCount = driver.devices().count();
    }

    @Override
    public boolean simulated() {
        return driver.simulated();
    }

    @Override
    public int driverVersion() {
        return driver.version();
    }

    @Override
    public int deviceCount() {
        return deviceCount;
    }

    @Override
    public String name(int device) {
        return driver.devices().name(device);
    }

    @Override
    public long totalBytes(int device) {
        return driver.devices().totalBytes(device);
    }

    @Override
    public long freeBytes(int device) {
        return driver.memory().freeBytes(device);
    }

    @Override
    public Availability memoryPools(int device) {
        return availability(device, DriverFeature.MEMORY_POOLS);
    }

    @Override
    public Availability virtualMemory(int device) {
        return availability(device, DriverFeature.VIRTUAL_MEMORY);
    }

    @Override
    public Availability managedMemory(int device) {
        return availability(device, DriverFeature.MANAGED_MEMORY);
    }

    private Availability availability(int device, DriverFeature feature) {
        Support support = driver.capabilities().devices().get(device).supports(feature);
        return support.supported() ? Availability.yes() : Availability.no(support.reason());
    }
}
