package io.cistern.loader.library;

import io.cistern.cuda.Streams;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Provides the segment source `library`: a C shared library beneath an allocator that keeps and splits its
/// memory, such as `caching:source="library:path=/x/alloc.so,…"`. It has the options of [LibraryProvider].
public final class LibrarySourceProvider implements SegmentSourceProvider {
    private static final long ALIGNMENT = 256;

    /// Creates the provider, for [java.util.ServiceLoader].
    public LibrarySourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return LibraryProvider.NAME;
    }

    @Override
    public List<SpecOption<?>> options() {
        return LibraryOptions.all();
    }

    @Override
    public Availability availability(DeviceEnvironment environment) {
        return LibraryProvider.available();
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        return new LibrarySource(LibraryProvider.opened(context));
    }

    /// Calls the library with the legacy default stream, because segments are not used in stream order.
    private record LibrarySource(LibraryAllocator library) implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            if (byteAlignment > ALIGNMENT) {
                throw new UnsupportedOperationException("segment source " + LibraryProvider.NAME + " aligns to "
                        + ALIGNMENT + " bytes, not to " + byteAlignment + ": its functions take no alignment");
            }
            long address = library.allocate(byteSize, device, Streams.LEGACY_DEFAULT);
            return new Segment(address, byteSize, device);
        }

        @Override
        public void release(Segment segment) {
            library.free(segment.address(), segment.byteSize(), segment.device(), Streams.LEGACY_DEFAULT);
        }

        @Override
        public void close() {
            library.close();
        }
    }
}
