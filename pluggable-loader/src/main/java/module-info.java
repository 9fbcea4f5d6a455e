/// Finds allocators and segment sources with [java.util.ServiceLoader], on the class path and on the module path, and
/// chooses the allocator that is current at startup. Exports nothing: [io.cistern.DeviceMemory#system()] finds it as
/// a service.
///
/// @uses io.cistern.spi.AllocatorProvider
/// @uses io.cistern.spi.SegmentSourceProvider
/// @provides io.cistern.spi.CatalogProvider
@org.jspecify.annotations.NullMarked
module io.cistern.loader {
    requires static org.jspecify;
    requires io.cistern.api;

    uses io.cistern.spi.AllocatorProvider;
    uses io.cistern.spi.SegmentSourceProvider;

    provides io.cistern.spi.CatalogProvider with
            io.cistern.loader.LoaderCatalogProvider;
}
