package io.cistern.caching;

import io.cistern.caching.internal.check.CheckedAllocator;
import io.cistern.caching.internal.check.ParanoidAllocator;
import io.cistern.caching.internal.check.PoisonedRanges;
import io.cistern.caching.options.CachingOption;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Provides the allocator `caching`, which keeps freed memory, splits and merges blocks, and grows by pages.
/// [CachingOption] has its options.
public final class CachingProvider implements AllocatorProvider {
    /// Makes the provider, for [java.util.ServiceLoader].
    public CachingProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "caching";
    }

    @Override
    public int priority() {
        return 100;
    }

    @Override
    public List<SpecOption<?>> options() {
        return CachingOption.ALL;
    }

    /// Returns `async` for PyTorch's `backend:cudaMallocAsync`.
    @Override
    public Optional<AllocatorSpec> redirect(AllocatorOptions options) {
        return new OptionReader(options).otherBackend();
    }

    @Override
    public boolean servesGraphs() {
        return true;
    }

    @Override
    public GraphAllocator openForGraphs(AllocatorContext context) {
        CachingOptions options = CachingOptions.read(context).forGraphs();
        return new GraphPool(new CachingAllocator(context, options), CachingAllocator.driver(context));
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return open(CachingOptions.read(context), context);
    }

    private static DeviceAllocator open(CachingOptions options, AllocatorContext context) {
        CudaDriver driver = CachingAllocator.driver(context);
        return switch (options.check()) {
            case OFF -> new CachingAllocator(context, options);
            case CHECKED -> new CheckedAllocator(new CachingAllocator(context, options), driver);
            case PARANOID -> {
                PoisonedRanges poisoned = new PoisonedRanges(context.events());
                CachingAllocator caching = new CachingAllocator(context, driver, poisoned, options);
                yield new CheckedAllocator(new ParanoidAllocator(caching, driver, poisoned), driver);
            }
        };
    }
}
