package io.cistern.pressure;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.time.Duration;
import java.util.List;

/// Provides the allocator `arbiter`, a [TaskArbiter]; a program gets it by
/// `allocator.extension(TaskArbiter.class)`. It becomes current only if the program or a setting names it.
/// Its options are `upstream`, a spec, which is required, and `patience_millis`, at least 1, by default
/// 100.
public final class ArbiterProvider implements AllocatorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<String> UPSTREAM = SpecOption.of(
                "arbiter", "upstream", "a spec", "required", "the allocator that tasks share", AllocatorOptions::text);
        static final SpecOption<Long> PATIENCE_MILLIS = SpecOption.of(
                "arbiter",
                "patience_millis",
                "a whole number from 1 to 3600000",
                String.valueOf(TaskArbiter.DEFAULT_PATIENCE.toMillis()),
                "how long a thread may wait for something other than memory before other tasks roll back",
                (options, key) -> options.number(key, 1, 3_600_000));
    }

    /// Creates the provider, for [java.util.ServiceLoader].
    public ArbiterProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "arbiter";
    }

    @Override
    public List<SpecOption<?>> options() {
        return List.of(Options.PATIENCE_MILLIS, Options.UPSTREAM);
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        Duration patience = Options.PATIENCE_MILLIS
                .read(context.options())
                .map(Duration::ofMillis)
                .orElse(TaskArbiter.DEFAULT_PATIENCE);
        String upstream = Options.UPSTREAM
                .read(context.options())
                .orElseThrow(() -> new ConfigurationException(
                        "'arbiter' needs the option 'upstream', for example upstream=\"caching\""));
        return new TaskArbiter(context.upstream(upstream), patience);
    }
}
