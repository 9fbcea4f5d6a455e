/// Finds allocators and segment sources on the class path, on the module path and in a plug-in directory,
/// and chooses the allocator that is current at startup. [io.cistern.DeviceMemory#system()] finds this
/// module as a service. The allocator `library` wraps a C shared library, and C code can use any allocator
/// [as a pair of functions][io.cistern.loader.functions].
///
/// @uses io.cistern.spi.AllocatorProvider
/// @uses io.cistern.spi.SegmentSourceProvider
/// @provides io.cistern.spi.AllocatorProvider
/// @provides io.cistern.spi.SegmentSourceProvider
/// @provides io.cistern.spi.catalog.CatalogProvider
@org.jspecify.annotations.NullMarked
module io.cistern.loader {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.loader.functions;

    uses io.cistern.spi.AllocatorProvider;
    uses io.cistern.spi.SegmentSourceProvider;

    provides io.cistern.spi.catalog.CatalogProvider with
            io.cistern.loader.LoaderCatalogProvider;
    provides io.cistern.spi.AllocatorProvider with
            io.cistern.loader.library.LibraryProvider;
    provides io.cistern.spi.SegmentSourceProvider with
            io.cistern.loader.library.LibrarySourceProvider;
}
