package com.example.allocator;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;

/// Names the allocator `shelf` and opens it. Named once more in `META-INF/services`, where it is found.
///
/// Option `most`: how many freed blocks of a size are kept, 0 to 1000; 8 without it.
public final class ShelfProvider implements AllocatorProvider {
    /// For the service loader.
    public ShelfProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "shelf";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        int most = context.options().number("most", 0, 1000).orElse(8L).intValue();
        return new ShelfAllocator((RangeSource) context.segments("linear"), most);
    }
}
