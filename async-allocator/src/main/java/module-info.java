/// The allocator `async` and the segment source `driver_pool`, both over the driver's own stream-ordered pools
/// ([io.cistern.async.AsyncOption] lists their options), and sharing of the pools' memory with other processes and
/// devices ([io.cistern.async.sharing]).
@org.jspecify.annotations.NullMarked
module io.cistern.async {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;

    exports io.cistern.async;
    exports io.cistern.async.sharing;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.async.AsyncProvider;
    provides io.cistern.spi.SegmentSourceProvider with
            io.cistern.async.DriverPoolSourceProvider;
}
