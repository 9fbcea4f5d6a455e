package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `aligned`: [AlignedAllocator]. Options: `alignment`, a power of two, 256 to 1 TiB, such as `2MiB`;
/// `upstream`, a spec.
public final class AlignedProvider extends AdaptorProvider {
    /// For [java.util.ServiceLoader].
    public AlignedProvider() {}

    @Override
    public String name() {
        return "aligned";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long alignment = bytes(context.options(), "alignment", "2MiB");
        DeviceAllocator opened = context.upstream(upstream);
        try {
            return new AlignedAllocator(opened, alignment);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("'aligned': " + e.getMessage(), e);
        }
    }
}
