package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.MemoryLocation;
import java.util.Optional;
import java.util.OptionalInt;

/// Says where the memory of an allocator's own pools is, relative to the device that a pool serves.
/// Immutable.
///
/// @param type the kind of place; not `HOST_NUMA_CURRENT`, which the driver accepts for no pool
/// @param node the NUMA node for `HOST_NUMA`, or empty for the one nearest to the device
/// @param managed whether the memory is managed: its pages move to the device or host that uses them
public record PoolLocation(MemoryLocation.Type type, OptionalInt node, boolean managed) {
    /// The device's own memory.
    public static final PoolLocation DEVICE = new PoolLocation(MemoryLocation.Type.DEVICE, OptionalInt.empty(), false);

    /// Memory that moves between the device, the host and other devices page by page.
    public static final PoolLocation MANAGED = new PoolLocation(MemoryLocation.Type.DEVICE, OptionalInt.empty(), true);

    /// Host memory, wherever the driver places it.
    public static final PoolLocation HOST = new PoolLocation(MemoryLocation.Type.HOST, OptionalInt.empty(), false);

    /// Host memory of the NUMA node nearest to the device.
    public static final PoolLocation HOST_NUMA =
            new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.empty(), false);

    private static final String NODE = "host_numa";

    /// Returns the location of host memory on one NUMA node.
    ///
    /// @param node the number of the node
    public static PoolLocation hostNuma(int node) {
        return new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.of(node), false);
    }

    /// Reads `device`, `managed`, `host`, `host_numa` or `host_numa:N`; returns empty for anything else.
    static Optional<PoolLocation> parse(String text) {
        return switch (text) {
            case "device" -> Optional.of(DEVICE);
            case "managed" -> Optional.of(MANAGED);
            case "host" -> Optional.of(HOST);
            case NODE -> Optional.of(HOST_NUMA);
            default ->
                text.matches(NODE + ":[0-9]{1,4}")
                        ? Optional.of(hostNuma(Integer.parseInt(text.substring(NODE.length() + 1))))
                        : Optional.empty();
        };
    }

    boolean onDevice() {
        return type == MemoryLocation.Type.DEVICE && !managed;
    }

    /// Returns whether a device can use the memory only after the pool is opened to it.
    boolean isClosed() {
        return type != MemoryLocation.Type.DEVICE;
    }

    /// Returns the driver's location for a device.
    MemoryLocation of(CudaDriver driver, int device) {
        return switch (type) {
            case DEVICE -> MemoryLocation.device(device);
            case HOST -> MemoryLocation.host();
            default ->
                MemoryLocation.hostNuma(node.orElseGet(
                        // -1 on a host with a single node
                        () -> Math.max(0, driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_ID))));
        };
    }

    /// Returns the feature that a device must have.
    DriverFeature feature() {
        return switch (type) {
            case DEVICE -> managed ? DriverFeature.MANAGED_MEMORY_POOLS : DriverFeature.MEMORY_POOLS;
            case HOST -> DriverFeature.HOST_MEMORY_POOLS;
            default -> DriverFeature.HOST_NUMA_MEMORY_POOLS;
        };
    }

    /// Returns the location as a spec writes it.
    @Override
    public String toString() {
        return switch (type) {
            case DEVICE -> managed ? "managed" : "device";
            case HOST -> "host";
            default -> NODE + (node.isPresent() ? ":" + node.getAsInt() : "");
        };
    }
}
