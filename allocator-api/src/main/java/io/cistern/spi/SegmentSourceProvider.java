package io.cistern.spi;

import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Names and opens a segment source. [java.util.ServiceLoader] finds it, as it finds an [AllocatorProvider].
public interface SegmentSourceProvider {
    /// Returns [AllocatorProvider#SPI_VERSION].
    int spiVersion();

    /// Returns the name of the source in specs: lower-case letters, digits, `-` and `_`.
    String name();

    /// Returns the options that [#open] reads, for documentation: `cistern options NAME` shows them.
    default List<? extends SpecOption<?>> options() {
        return List.of();
    }

    /// Returns whether the source can run here. An implementation must not create a context, allocate memory or
    /// throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Opens a source. Each call opens a new one.
    ///
    /// @throws io.cistern.errors.ConfigurationException if an option has a value that the source doesn't
    ///     accept
    SegmentSource open(AllocatorContext context);
}
