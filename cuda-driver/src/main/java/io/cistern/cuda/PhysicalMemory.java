package io.cistern.cuda;

/// The properties of physical memory to create (`CUmemAllocationProp`).
///
/// @param location the place where it lives
/// @param handleTypes bits of the [HandleType]s that it may be exported as; 0 for none
/// @param rdma whether network cards should reach it (`gpuDirectRDMACapable`)
/// @param device the device whose context makes the calls; for memory on a device, that device
public record PhysicalMemory(MemoryLocation location, int handleTypes, boolean rdma, int device) {
    /// Returns the properties of plain memory of a device: not exportable, no RDMA.
    public static PhysicalMemory onDevice(int device) {
        return new PhysicalMemory(MemoryLocation.device(device), 0, false, device);
    }
}
