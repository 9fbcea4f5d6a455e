/// The caching allocator: keeps what it got from the driver, splits it, and merges it again. Found by its name,
/// `caching`.
@org.jspecify.annotations.NullMarked
module io.cistern.caching {
    requires static org.jspecify;
    requires io.cistern.api;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.caching.CachingProvider;
}
