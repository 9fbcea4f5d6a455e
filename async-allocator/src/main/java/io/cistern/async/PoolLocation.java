package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.MemoryLocation;
import java.util.Optional;
import java.util.OptionalInt;

/// Where the memory of an allocator's own pools lives: as [MemoryLocation], but for whatever device it serves.
///
/// @param type the kind of place; not `HOST_NUMA_CURRENT`, which is no place for a pool
/// @param node the NUMA node for `HOST_NUMA`, or empty for the one nearest to the device
public record PoolLocation(MemoryLocation.Type type, OptionalInt node) {
    /// The device's own memory.
    public static final PoolLocation DEVICE = new PoolLocation(MemoryLocation.Type.DEVICE, OptionalInt.empty());

    /// Host memory, wherever the driver finds it.
    public static final PoolLocation HOST = new PoolLocation(MemoryLocation.Type.HOST, OptionalInt.empty());

    /// Host memory of the node nearest to the device.
    public static final PoolLocation HOST_NUMA = new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.empty());

    private static final String NODE = "host_numa";

    /// Host memory of one node.
    public static PoolLocation hostNuma(int node) {
        return new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.of(node));
    }

    /// Reads `device`, `host`, `host_numa` or `host_numa:N`; empty if it is none of them.
    static Optional<PoolLocation> parse(String text) {
        return switch (text) {
            case "device" -> Optional.of(DEVICE);
            case "host" -> Optional.of(HOST);
            case NODE -> Optional.of(HOST_NUMA);
            default ->
                text.matches(NODE + ":[0-9]{1,4}")
                        ? Optional.of(hostNuma(Integer.parseInt(text.substring(NODE.length() + 1))))
                        : Optional.empty();
        };
    }

    boolean onDevice() {
        return type == MemoryLocation.Type.DEVICE;
    }

    /// The place for a device.
    MemoryLocation of(CudaDriver driver, int device) {
        return switch (type) {
            case DEVICE -> MemoryLocation.device(device);
            case HOST -> MemoryLocation.host();
            default ->
                MemoryLocation.hostNuma(node.orElseGet(
                        // -1 where there is only one
                        () -> Math.max(0, driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_ID))));
        };
    }

    /// What a device must be able to do.
    DriverFeature feature() {
        return switch (type) {
            case DEVICE -> DriverFeature.MEMORY_POOLS;
            case HOST -> DriverFeature.HOST_MEMORY_POOLS;
            default -> DriverFeature.HOST_NUMA_MEMORY_POOLS;
        };
    }

    /// As a spec has it.
    @Override
    public String toString() {
        return switch (type) {
            case DEVICE -> "device";
            case HOST -> "host";
            default -> NODE + (node.isPresent() ? ":" + node.getAsInt() : "");
        };
    }
}
