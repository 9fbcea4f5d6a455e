package io.cistern.spi;

/// The devices that an allocator will serve.
public interface DeviceEnvironment {
    /// Whether the devices are simulated.
    boolean simulated();

    /// The driver API's version: 1000 × major + 10 × minor.
    int driverVersion();

    /// How many devices there are; ordinals run from 0.
    int deviceCount();

    /// A device's name.
    String name(int device);

    /// A device's memory in bytes.
    long totalBytes(int device);

    /// Free bytes of a device as the driver sees them now.
    long freeBytes(int device);

    /// Whether a device has stream-ordered pools.
    Availability memoryPools(int device);

    /// Whether a device has address ranges and physical handles.
    Availability virtualMemory(int device);
}
