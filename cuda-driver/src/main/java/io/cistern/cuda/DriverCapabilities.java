package io.cistern.cuda;

import java.util.List;
import java.util.Map;

/// The result of probing a driver and its devices once.
///
/// @param version the driver API's version: 1000 × major + 10 × minor
/// @param environment properties of the system that limit what works: MIG, vGPU, WSL, an old kernel module;
///     empty if there are none
/// @param devices one entry for each device, in order
public record DriverCapabilities(int version, List<String> environment, List<DeviceCapabilities> devices) {
    /// Copies the lists.
    public DriverCapabilities {
        environment = List.copyOf(environment);
        devices = List.copyOf(devices);
    }

    /// The abilities of one device.
    ///
    /// @param device its ordinal
    /// @param name its name
    /// @param uuid its UUID
    /// @param totalBytes its memory in bytes
    /// @param computeCapability 10 × major + minor
    /// @param granularity the smallest unit of physical memory, in bytes; 0 without virtual memory
    /// @param features the answer for each feature
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

        /// Returns the answer for one feature.
        public Support supports(DriverFeature feature) {
            return features.getOrDefault(feature, Support.no("not probed"));
        }
    }
}
