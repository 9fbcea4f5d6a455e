/// An allocator over the driver's own stream-ordered pools. Found by its name, `async`.
@org.jspecify.annotations.NullMarked
module io.cistern.async {
    requires static org.jspecify;
    requires io.cistern.api;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.async.AsyncProvider;
}
