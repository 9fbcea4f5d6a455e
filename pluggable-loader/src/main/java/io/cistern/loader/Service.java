package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Catalog.Kind;
import io.cistern.spi.SegmentSourceProvider;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/// What discovery asks of a provider, the same for allocators and for segment sources.
///
/// @param <P> the provider's type
/// @param type the service
/// @param kind what it provides
/// @param spiVersion the SPI it was built for
/// @param name its name
/// @param priority its priority
/// @param checks what stands before the provider once it is found to be sound
record Service<P>(
        Class<P> type,
        Kind kind,
        ToIntFunction<P> spiVersion,
        Function<P, String> name,
        ToIntFunction<P> priority,
        BiFunction<P, Found<P>, P> checks) {
    static final Service<AllocatorProvider> ALLOCATORS = new Service<>(
            AllocatorProvider.class,
            Kind.ALLOCATOR,
            AllocatorProvider::spiVersion,
            AllocatorProvider::name,
            AllocatorProvider::priority,
            CheckedAllocatorProvider::new);

    static final Service<SegmentSourceProvider> SOURCES = new Service<>(
            SegmentSourceProvider.class,
            Kind.SOURCE,
            SegmentSourceProvider::spiVersion,
            SegmentSourceProvider::name,
            source -> 0,
            CheckedSourceProvider::new);
}
