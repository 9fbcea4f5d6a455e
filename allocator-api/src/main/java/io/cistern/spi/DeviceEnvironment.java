package io.cistern.spi;

import java.util.function.IntFunction;
import java.util.stream.IntStream;

/// The devices that an allocator will serve.
public interface DeviceEnvironment {
    /// Returns whether the devices are simulated.
    boolean simulated();

    /// Returns the driver API's version: 1000 × major + 10 × minor.
    int driverVersion();

    /// Returns the number of devices. Ordinals run from 0.
    int deviceCount();

    /// Returns a device's name.
    String name(int device);

    /// Returns a device's memory in bytes.
    long totalBytes(int device);

    /// Returns the free bytes of a device, as the driver reports them now.
    long freeBytes(int device);

    /// Returns whether a device supports stream-ordered pools, and if not, why.
    Availability memoryPools(int device);

    /// Returns whether a device supports virtual memory management (`cuMemCreate`, `cuMemMap`), and if not,
    /// why.
    Availability virtualMemory(int device);

    /// Returns whether a device supports managed memory that the device and the host can access
    /// concurrently, and if not, why.
    default Availability managedMemory(int device) {
        return Availability.no("this environment does not report managed memory");
    }

    /// Returns the first answer of a device that is no; yes if there is none.
    ///
    /// @param ability asks a device, such as `environment::virtualMemory`
    default Availability onAll(IntFunction<Availability> ability) {
        return IntStream.range(0, deviceCount())
                .mapToObj(ability)
                .filter(answer -> !answer.available())
                .findFirst()
                .orElse(Availability.yes());
    }
}
