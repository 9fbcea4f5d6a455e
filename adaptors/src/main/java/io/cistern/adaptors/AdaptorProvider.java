package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;

/// The base of the providers of adaptors. It adds the required option `upstream`, a spec. These
/// providers are chosen only by name.
abstract class AdaptorProvider implements AllocatorProvider {
    static final String REQUIRED = "required";

    @Override
    public final int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public final List<SpecOption<?>> options() {
        List<SpecOption<?>> all = new ArrayList<>(ownOptions());
        all.add(upstream());
        return all;
    }

    /// Returns the options other than `upstream`.
    List<SpecOption<?>> ownOptions() {
        return List.of();
    }

    private SpecOption<String> upstream() {
        return SpecOption.of(
                name(), "upstream", "a spec", REQUIRED, "the allocator that it wraps", AllocatorOptions::text);
    }

    @Override
    public final DeviceAllocator open(AllocatorContext context) {
        String upstream = upstream().read(context.options()).orElseThrow(() -> missing("upstream", "\"caching\""));
        return open(context, upstream);
    }

    /// Reads the options and then opens the upstream, so that a wrong option costs nothing.
    abstract DeviceAllocator open(AllocatorContext context, String upstream);

    /// Returns the value of a required option.
    final <T> T required(SpecOption<T> option, AllocatorContext context, String example) {
        return option.read(context.options()).orElseThrow(() -> missing(option.key(), example));
    }

    /// Returns the error for a required option that is missing.
    final ConfigurationException missing(String key, String example) {
        return new ConfigurationException(
                "'" + name() + "' needs the option '" + key + "', for example " + key + "=" + example);
    }
}
