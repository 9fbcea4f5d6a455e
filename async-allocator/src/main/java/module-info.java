/// An allocator over the driver's own stream-ordered pools, found by its name, `async`; and the pools' memory
/// for other processes and devices ([io.cistern.async.sharing]).
@org.jspecify.annotations.NullMarked
module io.cistern.async {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.async.sharing;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.async.AsyncProvider;
}
