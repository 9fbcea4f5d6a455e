package com.example.allocator;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Names the allocator `shelf` and opens it. `META-INF/services` names this class, so that the loader finds it.
public final class ShelfProvider implements AllocatorProvider {
    private static final SpecOption<Long> MOST = SpecOption.of(
            "shelf",
            "most",
            "0 to 1000",
            "8",
            "how many freed blocks of a size are kept",
            (options, key) -> options.number(key, 0, 1000));

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
    public List<SpecOption<?>> options() {
        return List.of(MOST);
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        int most = MOST.read(context.options()).orElse(8L).intValue();
        return new ShelfAllocator(context.ranges("linear"), most);
    }
}
