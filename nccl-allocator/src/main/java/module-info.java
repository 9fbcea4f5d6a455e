/// Segment sources for collective communication. `vmm` gives physical memory by handles that other processes and
/// network cards can be given.
@org.jspecify.annotations.NullMarked
module io.cistern.nccl {
    requires static org.jspecify;
    requires io.cistern.api;

    provides io.cistern.spi.SegmentSourceProvider with
            io.cistern.nccl.VmmSourceProvider;
}
