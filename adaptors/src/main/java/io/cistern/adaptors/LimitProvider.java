package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Provides `limit`, a [LimitAllocator]. Options: `bytes`, the limit of each device; `upstream`, a spec.
public final class LimitProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> BYTES = SpecOption.of(
                "limit",
                "bytes",
                "bytes from 1, such as `8GiB`",
                REQUIRED,
                "the maximum live bytes on each device",
                LimitProvider::limitBytes);
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public LimitProvider() {}

    @Override
    public String name() {
        return "limit";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.BYTES);
    }

    private static Optional<Long> limitBytes(AllocatorOptions options, String key) {
        Optional<Long> bytes = options.bytes(key);
        if (bytes.orElse(1L) < 1) {
            throw new ConfigurationException("limit: bytes must be at least 1, not " + bytes.get());
        }
        return bytes;
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long limitBytes = required(Options.BYTES, context, "8GiB");
        return new LimitAllocator(context.upstream(upstream), limitBytes);
    }
}
