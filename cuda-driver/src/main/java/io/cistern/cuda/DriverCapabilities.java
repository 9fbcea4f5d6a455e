package io.cistern.cuda;

import java.util.List;
import java.util.Map;

/// The result of one probe of a driver and its devices.
///
/// @param version the driver API's version: 1000 × major + 10 × minor
/// @param environment what was found about the surroundings that changes what works: MIG, vGPU, WSL, an old kernel
///     module; empty when nothing is special
/// @param devices one entry a device, in order
public record DriverCapabilities(int version, List<String> environment, List<DeviceCapabilities> devices) {
    /// Copies the lists.
    public DriverCapabilities {
        environment = List.copyOf(environment);
        devices = List.copyOf(devices);
    }

    /// What one device can do.
    ///
    /// @param device its ordinal
    /// @param name its name
    /// @param uuid its UUID
    /// @param totalBytes its memory
    /// @param computeCapability 10 × major + minor
    /// @param granularity the smallest multiple for physical memory in bytes, 0 where there is no virtual memory
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

        /// The answer for one feature.
        public Support supports(DriverFeature feature) {
            return features.getOrDefault(feature, Support.no("not probed"));
        }
    }
}
