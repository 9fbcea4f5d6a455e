package io.cistern.caching;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;

/// Provides `caching`: memory is kept, split and merged, and grows by pages.
///
/// | option | values | meaning |
/// |---|---|---|
/// | `source` | a spec | where memory comes from; by default `pages`, or `linear` on devices without virtual memory
/// management |
/// | `page_size` | 2 MiB to 1 GiB | the size of all pages; by default 2 MiB to 20 MiB, by what is reserved |
/// | `alignment` | a power of two, 256 to 2 MiB | what all addresses are multiples of; by default 256 |
/// | `reuse` | `never`, `passed`, `wait` | whether idle pages of one stream serve another: never; once the work on
/// them has finished; or also before, the other stream waiting on the device (the default) |
/// | `slack` | 0 to 1 | how much more than the peak of live bytes may be reserved so that fewer pages need to move, as
/// a
/// share of that peak; by default 0.05 |
/// | `stable_mapping` | `true`, `false` | whether a virtual page keeps its physical page for life; then no page moves |
/// | `splits` | `true`, `false` | whether blocks are cut for smaller requests; if not, each is a segment of its own,
/// of one handle where the source has handles |
/// | `lanes` | `true`, `false` | whether each thread keeps some of the blocks that it freed; not where
/// `alignment` is more than 512 or `splits` is `false` |
/// | `lane_bytes` | 1 MiB to 1 GiB | how much of small blocks each thread keeps at most; by default a 64th of what is
/// reserved, from 8 to 32 MiB |
public final class CachingProvider implements AllocatorProvider {
    /// For [java.util.ServiceLoader].
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
    public DeviceAllocator open(AllocatorContext context) {
        return new CachingAllocator(context, CachingOptions.read(context));
    }
}
