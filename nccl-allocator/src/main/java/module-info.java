/// Memory for collective communication, and the communication itself: the segment sources `nccl`
/// (`ncclMemAlloc`) and `vmm` (physical memory by handles), the allocator `symmetric`, NCCL's
/// communicators, and the registration of pools.
@org.jspecify.annotations.NullMarked
module io.cistern.nccl {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;

    exports io.cistern.nccl;

    provides io.cistern.spi.SegmentSourceProvider with
            io.cistern.nccl.NcclSourceProvider,
            io.cistern.nccl.VmmSourceProvider;
    provides io.cistern.spi.AllocatorProvider with
            io.cistern.nccl.SymmetricProvider;
}
