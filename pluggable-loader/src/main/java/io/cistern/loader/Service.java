package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog.Kind;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/// The questions that discovery asks a provider, for allocators and for segment sources.
///
/// @param <P> the provider's type
/// @param type the service's type
/// @param kind the kind of object that it provides
/// @param spiVersion the SPI version that a provider was built for
/// @param name a provider's name
/// @param priority a provider's priority
/// @param checked wraps a sound provider in its checks
record Service<P>(
        Class<P> type,
        Kind kind,
        ToIntFunction<P> spiVersion,
        Function<P, String> name,
        ToIntFunction<P> priority,
        BiFunction<P, DiscoveredProvider<P>, P> checked) {
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
            _ -> 0,
            CheckedSourceProvider::new);
}
