package io.cistern.spi;

import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Names and opens a segment source; found by [java.util.ServiceLoader].
public interface SegmentSourceProvider {
    /// Returns [AllocatorProvider#SPI_VERSION].
    int spiVersion();

    /// Returns the name by which people ask for it: lower-case letters, digits, `-` and `_`.
    String name();

    /// Returns the options that [#open] asks for. They are read by people alone: `cistern options NAME` shows them.
    default List<? extends SpecOption<?>> options() {
        return List.of();
    }

    /// Returns whether it can run here. Creates no context, allocates nothing and does not throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Opens a source. Each call opens a new one.
    ///
    /// @throws io.cistern.errors.ConfigurationException for a value that it can't take
    SegmentSource open(AllocatorContext context);
}
