package io.cistern.cuda;

import java.util.List;
import java.util.Map;

/// The result of probing a driver and its devices once.
///
/// @param version the driver API's version: 1000 × major + 10 × minor
/// @param environment human-readable properties of the system that limit what works, such as MIG, vGPU, WSL, or
///     an old kernel module; empty if there are none
/// @param devices one entry for each device, in order
public record DriverCapabilities(int version, List<String> environment, List<DeviceCapabilities> devices) {
    /// Copies the lists.
    public DriverCapabilities {
        environment = List.copyOf(environment);
        devices = List.copyOf(devices);
    }

    /// The capabilities of one device.
    ///
    /// @param device its ordinal
    /// @param name its name
    /// @param uuid its UUID
    /// @param totalBytes its memory in bytes
    /// @param computeCapability 10 × major + minor
    /// @param granularity the smallest [granularity][VirtualMemory#granularity] of physical memory, in bytes; 0
    ///     if the device has no virtual memory management
    /// @param features whether the device has each feature
    public record DeviceCapabilities(
            int device,
            String name,
            String uuid,
            long totalBytes,
            int computeCapability,
            long granularity,
            Map<DriverFeature, Support> features) {
        /// Copies the map.
        public DeviceCapabilities {
            features = Map.copyOf(features);
        }

        /// Returns whether the device has a feature and, if not, why.
        public Support supports(DriverFeature feature) {
            return features.getOrDefault(feature, Support.no("not probed"));
        }
    }
}
