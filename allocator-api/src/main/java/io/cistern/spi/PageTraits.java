package io.cistern.spi;

/// The properties of the memory of a [PageSource].
///
/// @param granularity sizes and addresses are multiples of this many bytes
/// @param location `device`, `host` or `host_numa:N`
/// @param handleType `none`, `posix_fd` or `fabric`
/// @param rdma whether network cards can access the memory directly (GPUDirect RDMA)
public record PageTraits(long granularity, String location, String handleType, boolean rdma) {}
