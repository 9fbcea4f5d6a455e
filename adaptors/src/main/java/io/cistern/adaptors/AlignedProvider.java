package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Provides `aligned`, an [AlignedAllocator]. Options: `alignment`, a power of two from 256 to 1 TiB, such as
/// `2MiB`; `upstream`, a spec.
public final class AlignedProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> ALIGNMENT = SpecOption.of(
                "aligned",
                "alignment",
                "a power of two from 256 to 1TiB; less than the device's memory",
                REQUIRED,
                "all addresses are multiples of it",
                AllocatorOptions::bytes);
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public AlignedProvider() {}

    @Override
    public String name() {
        return "aligned";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.ALIGNMENT);
    }

    /// A block takes up to the alignment more than was asked for.
    private static void requireRoom(long alignment, DeviceEnvironment devices) {
        for (int device = 0; device < devices.deviceCount(); device++) {
            if (alignment >= devices.totalBytes(device)) {
                throw new ConfigurationException("aligned: no block fits with alignment=" + alignment + " on device "
                        + device + ", which has " + devices.totalBytes(device) + " bytes; valid: less than that");
            }
        }
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long alignment = required(Options.ALIGNMENT, context, "2MiB");
        requireRoom(alignment, context.devices());
        DeviceAllocator opened = context.upstream(upstream);
        try {
            return new AlignedAllocator(opened, alignment);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("'aligned': " + e.getMessage(), e);
        }
    }
}
