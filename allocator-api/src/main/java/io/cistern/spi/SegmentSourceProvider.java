package io.cistern.spi;

/// Names and opens a segment source; found by [java.util.ServiceLoader].
public interface SegmentSourceProvider {
    /// Returns [AllocatorProvider#SPI_VERSION].
    int spiVersion();

    /// The name by which people ask for it.
    String name();

    /// Whether it can run here. Cheap: creates no context, allocates nothing, does not throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Opens a source.
    ///
    /// @throws io.cistern.errors.ConfigurationException for an option it does not know or a value it can't take
    SegmentSource open(AllocatorContext context);
}
