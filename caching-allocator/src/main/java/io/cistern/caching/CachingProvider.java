package io.cistern.caching;

import io.cistern.caching.internal.check.CheckedAllocator;
import io.cistern.caching.internal.check.CheckedBlocks;
import io.cistern.caching.internal.check.ParanoidAllocator;
import io.cistern.caching.internal.check.PoisonedRanges;
import io.cistern.caching.options.CachingOption;
import io.cistern.caching.options.CheckLevel;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.EventSink;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Provides the allocator `caching`, which keeps freed memory, splits and merges blocks, and grows by
/// pages. [CachingOption] lists its options.
public final class CachingProvider implements AllocatorProvider {
    /// Creates the provider; [java.util.ServiceLoader] calls this.
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
        CachingOptions options = CachingOptions.read(context);
        if (options.check() == CheckLevel.OFF) {
            return new CachingAllocator(context, options);
        }
        CudaDriver driver = CachingAllocator.driver(context);
        CheckedBlocks blocks = new CheckedBlocks();
        PoisonedRanges poisoned = new PoisonedRanges(context.events());
        boolean isParanoid = options.check() == CheckLevel.PARANOID;
        EventSink events = isParanoid ? poisoned : context.events();
        CachingAllocator caching = new CachingAllocator(context, driver, events, options, blocks::find);
        DeviceAllocator checked = isParanoid ? new ParanoidAllocator(caching, driver, poisoned) : caching;
        return new CheckedAllocator(checked, driver, blocks);
    }
}
