/// The caching allocator keeps memory obtained from the driver, splits it into blocks, and merges them
/// again. Its name is `caching`; [io.cistern.caching.options.CachingOption] lists its options.
@org.jspecify.annotations.NullMarked
module io.cistern.caching {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.caching;
    exports io.cistern.caching.options;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.caching.CachingProvider;
}
