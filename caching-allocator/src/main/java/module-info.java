/// The caching allocator: keeps what it got from the driver, splits it, and merges it again. Found by its name,
/// `caching`; [io.cistern.caching.CachingOption] lists its options.
@org.jspecify.annotations.NullMarked
module io.cistern.caching {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.caching;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.caching.CachingProvider;
}
