package io.cistern.cuda.ffm;

import static io.cistern.cuda.DriverFeature.BUDGET_NOTIFICATION;
import static io.cistern.cuda.DriverFeature.DMA_BUF;
import static io.cistern.cuda.DriverFeature.FABRIC;
import static io.cistern.cuda.DriverFeature.HARDWARE_DECOMPRESS;
import static io.cistern.cuda.DriverFeature.HOST_MEMORY_POOLS;
import static io.cistern.cuda.DriverFeature.HOST_NUMA_MEMORY;
import static io.cistern.cuda.DriverFeature.HOST_NUMA_MEMORY_POOLS;
import static io.cistern.cuda.DriverFeature.MANAGED_MEMORY;
import static io.cistern.cuda.DriverFeature.MANAGED_MEMORY_POOLS;
import static io.cistern.cuda.DriverFeature.MEMORY_POOLS;
import static io.cistern.cuda.DriverFeature.MULTICAST;
import static io.cistern.cuda.DriverFeature.POSIX_FILE_DESCRIPTOR;
import static io.cistern.cuda.DriverFeature.RDMA;
import static io.cistern.cuda.DriverFeature.STREAM_ID;
import static io.cistern.cuda.DriverFeature.VIRTUAL_MEMORY;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.Support;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/// Probes what the driver and its devices support, first by symbols, then by attributes. Where an attribute
/// is known to report support too often, the probe tries the feature. It creates no context, so it uses no
/// device memory.
final class CapabilityProbe {
    /// A virtual GPU has its profile at the end of its name, for example `NVIDIA A100-40C`, or the name begins
    /// with `GRID`.
    private static final Pattern VIRTUAL_GPU = Pattern.compile("^GRID .*|.*-\\d+[ABCQ]$");

    private static final int MANAGED_POOLS_SINCE = 13000;

    private final Startup startup;
    private final NativeDevices devices;
    private final NativeMemoryPools pools;
    private final NativeVirtualMemory virtualMemory;
    private final Set<String> environment = new TreeSet<>();

    CapabilityProbe(
            Startup startup, NativeDevices devices, NativeMemoryPools pools, NativeVirtualMemory virtualMemory) {
        this.startup = startup;
        this.devices = devices;
        this.pools = pools;
        this.virtualMemory = virtualMemory;
    }

    DriverCapabilities probe() {
        if (Files.exists(Path.of("/dev/dxg"))) {
            environment.add("WSL: memory is paged by Windows; no sharing between processes by file descriptor");
        }
        List<DriverCall> missing = startup.library().missing(DriverLibrary.OPTIONAL.toArray(DriverCall[]::new));
        if (!missing.isEmpty()) {
            environment.add("old driver: API " + Startup.versionName(startup.version()) + " lacks "
                    + String.join(", ", missing.stream().map(DriverCall::symbol).toList()));
        }
        List<DeviceCapabilities> found =
                IntStream.range(0, devices.count()).mapToObj(this::device).toList();
        return new DriverCapabilities(startup.version(), new ArrayList<>(environment), found);
    }

    private DeviceCapabilities device(int device) {
        String name = devices.name(device);
        describe(device, name);
        Map<DriverFeature, Support> features = features(device);
        return new DeviceCapabilities(
                device,
                name,
                present(DriverCall.DEVICE_GET_UUID) ? devices.uuid(device) : "unknown",
                devices.totalBytes(device),
                10 * devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR)
                        + devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
                features.getOrDefault(VIRTUAL_MEMORY, Support.no("not probed")).supported()
                        ? virtualMemory.smallestGranularity(PhysicalMemory.onDevice(device))
                        : 0,
                features);
    }

    private void describe(int device, String name) {
        if (name.contains(" MIG ")) {
            environment.add(
                    "MIG: device " + device + " is a slice of a GPU (" + name + "); slices can't access each other");
        } else if (VIRTUAL_GPU.matcher(name).matches()) {
            environment.add("vGPU: device " + device + " is a virtual GPU (" + name
                    + "); its profile decides whether it has pools and virtual memory");
        }
    }

    private Map<DriverFeature, Support> features(int device) {
        Map<DriverFeature, Support> features = new EnumMap<>(DriverFeature.class);
        Support virtual = virtualMemory(device);
        features.put(VIRTUAL_MEMORY, virtual);
        features.put(MEMORY_POOLS, pools(device));
        features.put(MANAGED_MEMORY, managed(device));
        features.put(MANAGED_MEMORY_POOLS, managedPools(device));
        features.put(HOST_MEMORY_POOLS, pools(device, DeviceAttribute.HOST_MEMORY_POOLS_SUPPORTED, "CUDA 13.0"));
        features.put(
                HOST_NUMA_MEMORY_POOLS, pools(device, DeviceAttribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED, "CUDA 12.2"));
        features.put(
                HARDWARE_DECOMPRESS,
                pools(device, DeviceAttribute.MEM_DECOMPRESS_ALGORITHM_MASK, "a decompression engine and CUDA 12.8"));
        features.put(STREAM_ID, symbol(DriverCall.STREAM_GET_ID, 12000));
        features.put(BUDGET_NOTIFICATION, symbol(DriverCall.DEVICE_REGISTER_ASYNC_NOTIFICATION, 12040));
        features.put(DMA_BUF, attribute(device, DeviceAttribute.DMA_BUF_SUPPORTED, "use the open kernel module"));
        features.put(
                MULTICAST, attribute(device, DeviceAttribute.MULTICAST_SUPPORTED, "it needs NVSwitch and CUDA 12.1"));
        features.put(HOST_NUMA_MEMORY, and(virtual, () -> hostNuma(device)));
        features.put(
                POSIX_FILE_DESCRIPTOR,
                and(
                        virtual,
                        () -> attribute(
                                device,
                                DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                                "WSL and Windows can't share memory by file descriptor")));
        features.put(
                RDMA,
                and(
                        virtual,
                        () -> attribute(
                                device,
                                DeviceAttribute.GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                "load nvidia-peermem, or use the open kernel module with dma-buf")));
        features.put(FABRIC, and(virtual, () -> fabric(device)));
        return features;
    }

    private static Support and(Support first, Supplier<Support> second) {
        return first.supported() ? second.get() : first;
    }

    private Support pools(int device) {
        Support attribute = and(
                symbol(DriverCall.MEM_ALLOC_ASYNC, 11020),
                device,
                DeviceAttribute.MEMORY_POOLS_SUPPORTED,
                "vGPU profiles without unified memory have none");
        // A vGPU may report pools but refuse to create one.
        return and(
                attribute,
                () -> tried(
                        () -> pools.tryCreate(MemoryPoolProperties.onDevice(device)),
                        "vGPU profiles may refuse pools"));
    }

    /// Without concurrent access, managed memory is limited to the device's size, and the host must not touch
    /// it while a kernel runs.
    private Support managed(int device) {
        return attribute(
                device,
                DeviceAttribute.CONCURRENT_MANAGED_ACCESS,
                "it needs Linux, a Pascal or later GPU, and, on a vGPU, a profile with unified memory");
    }

    /// No attribute reports them, so they are tried.
    private Support managedPools(int device) {
        Support known = startup.version() < MANAGED_POOLS_SINCE
                ? Support.no(
                        "driver API " + Startup.versionName(startup.version()) + " has no managed pools; update the"
                                + " driver to API " + Startup.versionName(MANAGED_POOLS_SINCE) + " or later")
                : Support.yes();
        return and(
                and(managed(device), () -> known),
                () -> tried(
                        () -> pools.tryCreate(MemoryPoolProperties.managed(device)),
                        "the driver refuses managed pools here; use source=managed"));
    }

    private Support pools(int device, DeviceAttribute attribute, String needed) {
        return and(symbol(DriverCall.MEM_ALLOC_ASYNC, 11020), device, attribute, "it needs " + needed + " or later");
    }

    private Support virtualMemory(int device) {
        return and(
                symbol(DriverCall.MEM_ADDRESS_RESERVE, 10020),
                device,
                DeviceAttribute.VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                "vGPU profiles and Windows' WDDM may have none");
    }

    private Support hostNuma(int device) {
        Support attribute = attribute(
                device, DeviceAttribute.HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "it needs CUDA 12.2 or later");
        return and(attribute, () -> {
            int node = Math.max(0, devices.attribute(device, DeviceAttribute.HOST_NUMA_ID));
            PhysicalMemory memory = new PhysicalMemory(MemoryLocation.hostNuma(node), 0, false, device);
            return tried(() -> virtualMemory.tryCreate(memory), "host NUMA node " + node);
        });
    }

    private Support fabric(int device) {
        Support attribute = attribute(
                device, DeviceAttribute.HANDLE_TYPE_FABRIC_SUPPORTED, "it needs NVLink fabric and CUDA 12.4 or later");
        // The attribute describes the hardware; a handle also needs an IMEX channel.
        PhysicalMemory memory =
                new PhysicalMemory(MemoryLocation.device(device), HandleType.FABRIC.bit(), false, device);
        return and(
                attribute,
                () -> tried(
                        () -> virtualMemory.tryCreate(memory),
                        "no IMEX channel; start nvidia-imex and give the process"
                                + " /dev/nvidia-caps-imex-channels/channel0"));
    }

    private Support symbol(DriverCall call, int since) {
        return present(call)
                ? Support.yes()
                : Support.no("driver API " + Startup.versionName(startup.version()) + " has no " + call.symbol()
                        + "; update the driver to API " + Startup.versionName(since) + " or later");
    }

    private boolean present(DriverCall call) {
        return startup.library().missing(call).isEmpty();
    }

    private Support and(Support first, int device, DeviceAttribute attribute, String advice) {
        return and(first, () -> attribute(device, attribute, advice));
    }

    private Support attribute(int device, DeviceAttribute attribute, String advice) {
        return devices.attribute(device, attribute) != 0
                ? Support.yes()
                : Support.no("the device reports no " + attribute.name() + ": " + advice);
    }

    private static Support tried(Runnable call, String advice) {
        try {
            call.run();
            return Support.yes();
        } catch (CudaException e) {
            // A full device can still have the feature.
            return e.result() == CudaResult.OUT_OF_MEMORY ? Support.yes() : Support.no(e.getMessage() + ": " + advice);
        }
    }
}
