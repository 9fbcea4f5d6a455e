package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog.Kind;

/// The questions that discovery asks a provider, for allocators and for segment sources.
///
/// @param <P> the provider's type
abstract sealed class Service<P> {
    static final Service<AllocatorProvider> ALLOCATORS = new OfAllocators();
    static final Service<SegmentSourceProvider> SOURCES = new OfSources();

    private final Class<P> type;
    private final Kind kind;

    private Service(Class<P> type, Kind kind) {
        this.type = type;
        this.kind = kind;
    }

    /// Returns the service's type.
    Class<P> type() {
        return type;
    }

    /// Returns the kind of thing that it provides.
    Kind kind() {
        return kind;
    }

    /// Returns the SPI version that a provider was built for.
    abstract int spiVersion(P provider);

    abstract String name(P provider);

    abstract int priority(P provider);

    /// Returns a sound provider wrapped in its checks.
    abstract P checked(P provider, DiscoveredProvider<P> found);

    private static final class OfAllocators extends Service<AllocatorProvider> {
        OfAllocators() {
            super(AllocatorProvider.class, Kind.ALLOCATOR);
        }

        @Override
        int spiVersion(AllocatorProvider provider) {
            return provider.spiVersion();
        }

        @Override
        String name(AllocatorProvider provider) {
            return provider.name();
        }

        @Override
        int priority(AllocatorProvider provider) {
            return provider.priority();
        }

        @Override
        AllocatorProvider checked(AllocatorProvider provider, DiscoveredProvider<AllocatorProvider> found) {
            return new CheckedAllocatorProvider(provider, found);
        }
    }

    private static final class OfSources extends Service<SegmentSourceProvider> {
        OfSources() {
            super(SegmentSourceProvider.class, Kind.SOURCE);
        }

        @Override
        int spiVersion(SegmentSourceProvider provider) {
            return provider.spiVersion();
        }

        @Override
        String name(SegmentSourceProvider provider) {
            return provider.name();
        }

        @Override
        int priority(SegmentSourceProvider provider) {
            return 0;
        }

        @Override
        SegmentSourceProvider checked(SegmentSourceProvider provider, DiscoveredProvider<SegmentSourceProvider> found) {
            return new CheckedSourceProvider(provider, found);
        }
    }
}
