/// Helps programs when device memory is short: tasks that share a GPU wait for one another, roll back, split
/// their input, and spill buffers to host memory and files.
@org.jspecify.annotations.NullMarked
module io.cistern.pressure {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.cuda;

    exports io.cistern.pressure;

    uses io.cistern.cuda.CudaDriverProvider;
    uses io.cistern.spi.AllocatorProvider;
    uses io.cistern.spi.SegmentSourceProvider;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.pressure.ArbiterProvider;
}
