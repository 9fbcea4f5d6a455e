package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorSpec;
import org.jspecify.annotations.Nullable;

/// An allocator whose name stands for a spec. The setting `cistern.define.NAME` defines it, or a library in the
/// plug-in directory does.
///
/// @param name the name
/// @param spec the spec that it stands for
/// @param setting the source of the setting that defines it, for messages; null for a library
record DefinedAllocator(
        String name, AllocatorSpec spec, @Nullable String setting) implements AllocatorProvider {
    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    /// @throws ConfigurationException if the spec can't be opened, or leads back to this name
    @Override
    public DeviceAllocator open(AllocatorContext context) {
        try {
            return new AllocatorAdaptor(context.upstream(spec.text())) {}; // the framework closes the upstream
        } catch (ConfigurationException e) {
            throw setting == null ? e : new ConfigurationException(setting + ": " + e.getMessage(), e);
        }
    }
}
