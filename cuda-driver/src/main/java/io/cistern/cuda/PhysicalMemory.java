package io.cistern.cuda;

/// What kind of physical memory to create (`CUmemAllocationProp`).
///
/// @param location where it lives
/// @param handleTypes bits of [HandleType] it may be exported as; 0 for none
/// @param rdma whether network cards shall reach it (`gpuDirectRDMACapable`)
/// @param device the device whose context makes the calls; for memory on a device, that device
public record PhysicalMemory(MemoryLocation location, int handleTypes, boolean rdma, int device) {
    /// Plain memory of a device: not exportable, no RDMA.
    public static PhysicalMemory onDevice(int device) {
        return new PhysicalMemory(MemoryLocation.device(device), 0, false, device);
    }
}
