package io.cistern.cuda;

/// What a device and its driver may or may not be able to do.
public enum DriverFeature {
    /// `cuMemAllocAsync` and pools.
    MEMORY_POOLS,
    /// Address ranges and physical handles.
    VIRTUAL_MEMORY,
    /// Memory that moves between the host and devices page by page while both run.
    MANAGED_MEMORY,
    /// Pools of such memory; CUDA 13.0.
    MANAGED_MEMORY_POOLS,
    /// Pools of host memory of whatever NUMA node; CUDA 13.0.
    HOST_MEMORY_POOLS,
    /// Pools of host memory of one NUMA node.
    HOST_NUMA_MEMORY_POOLS,
    /// Pools that the device's decompression engine may write to.
    HARDWARE_DECOMPRESS,
    /// Physical memory on a host NUMA node.
    HOST_NUMA_MEMORY,
    /// Sharing by file descriptor.
    POSIX_FILE_DESCRIPTOR,
    /// Sharing by fabric handle; needs an IMEX channel.
    FABRIC,
    /// Network cards reach physical memory that was created for it.
    RDMA,
    /// Sharing by dma-buf.
    DMA_BUF,
    /// NVLink multicast, which only NCCL uses.
    MULTICAST,
    /// `cuStreamGetId`.
    STREAM_ID,
    /// Being told that the process uses more memory than its budget; CUDA 12.4.
    BUDGET_NOTIFICATION
}
