package io.cistern.cuda;

/// Features that a device and its driver may support or lack.
public enum DriverFeature {
    /// `cuMemAllocAsync` and pools.
    MEMORY_POOLS,
    /// Virtual memory management: address ranges and handles of physical memory.
    VIRTUAL_MEMORY,
    /// Memory that moves between the host and devices page by page while both run.
    MANAGED_MEMORY,
    /// Pools of managed memory; CUDA 13.0.
    MANAGED_MEMORY_POOLS,
    /// Pools of host memory of any NUMA node; CUDA 13.0.
    HOST_MEMORY_POOLS,
    /// Pools of host memory of one NUMA node.
    HOST_NUMA_MEMORY_POOLS,
    /// Pools that the device's decompression engine may write to.
    HARDWARE_DECOMPRESS,
    /// Physical memory on a host NUMA node.
    HOST_NUMA_MEMORY,
    /// Sharing memory with other processes by file descriptor.
    POSIX_FILE_DESCRIPTOR,
    /// Sharing memory with other processes by fabric handle; needs an IMEX channel.
    FABRIC,
    /// Direct access of network cards (GPUDirect RDMA) to physical memory that was created for it.
    RDMA,
    /// Sharing memory with other drivers by dma-buf.
    DMA_BUF,
    /// NVLink multicast, which only NCCL uses.
    MULTICAST,
    /// `cuStreamGetId`.
    STREAM_ID,
    /// A notice when the process uses more memory than its budget; CUDA 12.4.
    BUDGET_NOTIFICATION
}
