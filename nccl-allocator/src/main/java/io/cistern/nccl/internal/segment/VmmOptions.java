package io.cistern.nccl.internal.segment;

import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.Support;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Stream;

/// The options of the source `vmm`.
///
/// @param onHost whether memory lives on a host NUMA node instead of the device
/// @param node the node, or empty for the one nearest to the device
/// @param handle how memory can be exported, or empty for the widest type that works
/// @param rdma whether network cards reach the memory, or empty for yes if that is supported
/// @param byteAlignment the unit of sizes and addresses of physical memory, besides the granularity
public record VmmOptions(
        boolean onHost, OptionalInt node, Optional<HandleType> handle, Optional<Boolean> rdma, long byteAlignment) {
    private static final String HOST = "host_numa";
    private static final SpecOption<String> LOCATION = SpecOption.of(
            "vmm",
            "location",
            "`device`, `host_numa`, `host_numa:N`",
            "`device`",
            "where the memory is; `host_numa`: on the host's nearest NUMA node",
            VmmOptions::location);
    private static final SpecOption<String> HANDLE = SpecOption.of(
            "vmm",
            "handle",
            "`auto`, `none`, `posix_fd`, `fabric`",
            "`auto`",
            "how memory can be exported; `auto`: the widest type that works",
            (options, key) -> options.choice(key, List.of("auto", "none", "posix_fd", "fabric")));
    private static final SpecOption<Long> ALIGNMENT = SpecOption.of(
            "vmm",
            "alignment",
            "a power of two up to 1GiB",
            "the driver's granularity",
            "sizes and addresses of physical memory are multiples of it",
            VmmOptions::alignment);
    private static final SpecOption<String> RDMA = SpecOption.of(
            "vmm",
            "rdma",
            "`auto`, `true`, `false`",
            "`auto`",
            "whether network cards can access the memory; `auto`: where that is supported",
            (options, key) -> options.choice(key, List.of("auto", "true", "false")));

    public static final List<SpecOption<?>> ALL = List.of(LOCATION, HANDLE, ALIGNMENT, RDMA);

    /// With a larger alignment, one block would take a good part of a device.
    private static final long LARGEST_ALIGNMENT = 1L << 30;

    public static VmmOptions read(AllocatorOptions options) {
        String location = LOCATION.read(options).orElse("device");
        return new VmmOptions(
                !location.equals("device"),
                node(location),
                handle(options),
                rdma(options),
                ALIGNMENT.read(options).orElse(1L));
    }

    private static Optional<String> location(AllocatorOptions options, String key) {
        Optional<String> location = options.text(key);
        location.ifPresent(VmmOptions::node);
        return location;
    }

    private static Optional<Long> alignment(AllocatorOptions options, String key) {
        Optional<Long> given = options.bytes(key);
        long alignment = given.orElse(1L);
        if (alignment < 1 || alignment > LARGEST_ALIGNMENT || Long.bitCount(alignment) != 1) {
            throw new ConfigurationException("vmm: alignment must be a power of two up to 1GiB, not " + alignment);
        }
        return given;
    }

    private static OptionalInt node(String location) {
        if (location.equals("device") || location.equals(HOST)) {
            return OptionalInt.empty();
        }
        if (location.matches(HOST + ":[0-9]{1,4}")) {
            return OptionalInt.of(Integer.parseInt(location.substring(HOST.length() + 1)));
        }
        throw new ConfigurationException(
                "vmm: location must be device, host_numa or host_numa:N with a node's number, not \"" + location
                        + "\"");
    }

    private static Optional<HandleType> handle(AllocatorOptions options) {
        Optional<String> word = HANDLE.read(options);
        return Stream.of(HandleType.values())
                .filter(type -> word.equals(Optional.of(type.word())))
                .findFirst();
    }

    private static Optional<Boolean> rdma(AllocatorOptions options) {
        String word = RDMA.read(options).orElse("auto");
        return word.equals("auto") ? Optional.empty() : Optional.of(word.equals("true"));
    }

    /// Checks the options that a spec names.
    ///
    /// @throws ConfigurationException if a device does not support one of them
    public void requireSupport(DriverCapabilities capabilities) {
        for (DriverCapabilities.DeviceCapabilities device : capabilities.devices()) {
            if (onHost) {
                require(device, DriverFeature.HOST_NUMA_MEMORY, "location=host_numa");
            }
            if (rdma.orElse(false)) {
                require(device, DriverFeature.RDMA, "rdma=true");
            }
            if (handle.orElse(HandleType.NONE) != HandleType.NONE) {
                require(device, feature(handle.get()), "handle=" + handle.get().word());
            }
        }
    }

    /// Checks that a page fits on each device.
    ///
    /// @throws ConfigurationException if it does not
    public void requireRoom(DeviceEnvironment devices) {
        for (int device = 0; device < devices.deviceCount() && !onHost; device++) {
            if (byteAlignment > devices.totalBytes(device)) {
                throw new ConfigurationException("vmm: no page fits with alignment=" + byteAlignment + " on device "
                        + device + ", which has " + devices.totalBytes(device) + " bytes; valid: at most that");
            }
        }
    }

    private static void require(DriverCapabilities.DeviceCapabilities device, DriverFeature feature, String option) {
        Support support = device.supports(feature);
        if (!support.supported()) {
            throw new ConfigurationException(
                    "vmm: " + option + " is not supported on device " + device.device() + ": " + support.reason());
        }
    }

    static DriverFeature feature(HandleType handle) {
        return handle == HandleType.FABRIC ? DriverFeature.FABRIC : DriverFeature.POSIX_FILE_DESCRIPTOR;
    }
}
