package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;

/// What the providers of adaptors have in common: the option `upstream`, a spec, which must be given. By name only.
abstract class AdaptorProvider implements AllocatorProvider {
    @Override
    public final int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public final DeviceAllocator open(AllocatorContext context) {
        String upstream = context.options().text("upstream").orElseThrow(() -> missing("upstream", "\"caching\""));
        return open(context, upstream);
    }

    /// Reads the options, then opens the upstream: a wrong option should cost nothing.
    abstract DeviceAllocator open(AllocatorContext context, String upstream);

    /// A number of bytes that must be given.
    final long bytes(AllocatorOptions options, String key, String example) {
        return options.bytes(key).orElseThrow(() -> missing(key, example));
    }

    /// The error for an option that must be given.
    final ConfigurationException missing(String key, String example) {
        return new ConfigurationException(
                "'" + name() + "' needs the option '" + key + "', for example " + key + "=" + example);
    }
}
