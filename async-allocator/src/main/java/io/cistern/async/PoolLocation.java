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
/// @param managed whether it moves from there to where it is used, and back
public record PoolLocation(MemoryLocation.Type type, OptionalInt node, boolean managed) {
    /// The device's own memory.
    public static final PoolLocation DEVICE = new PoolLocation(MemoryLocation.Type.DEVICE, OptionalInt.empty(), false);

    /// Memory that moves between the device, the host and other devices page by page.
    public static final PoolLocation MANAGED = new PoolLocation(MemoryLocation.Type.DEVICE, OptionalInt.empty(), true);

    /// Host memory, wherever the driver finds it.
    public static final PoolLocation HOST = new PoolLocation(MemoryLocation.Type.HOST, OptionalInt.empty(), false);

    /// Host memory of the node nearest to the device.
    public static final PoolLocation HOST_NUMA =
            new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.empty(), false);

    private static final String NODE = "host_numa";

    /// Host memory of one node.
    public static PoolLocation hostNuma(int node) {
        return new PoolLocation(MemoryLocation.Type.HOST_NUMA, OptionalInt.of(node), false);
    }

    /// Reads `device`, `managed`, `host`, `host_numa` or `host_numa:N`; empty if it is none of them.
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

    /// Whether a device reaches it only when it is opened to it.
    boolean isClosed() {
        return type != MemoryLocation.Type.DEVICE;
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
            case DEVICE -> managed ? DriverFeature.MANAGED_MEMORY_POOLS : DriverFeature.MEMORY_POOLS;
            case HOST -> DriverFeature.HOST_MEMORY_POOLS;
            default -> DriverFeature.HOST_NUMA_MEMORY_POOLS;
        };
    }

    /// As a spec has it.
    @Override
    public String toString() {
        return switch (type) {
            case DEVICE -> managed ? "managed" : "device";
            case HOST -> "host";
            default -> NODE + (node.isPresent() ? ":" + node.getAsInt() : "");
        };
    }
}
