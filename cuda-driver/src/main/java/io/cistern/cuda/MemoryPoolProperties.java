package io.cistern.cuda;

/// What a new pool is made of (`CUmemPoolProps`).
///
/// @param location where its memory lives
/// @param handleTypes bits of [HandleType] it may be exported as; 0 for none
/// @param maxByteSize most bytes it may reserve, or 0 for the driver's own limit
public record MemoryPoolProperties(MemoryLocation location, int handleTypes, long maxByteSize) {
    /// A plain pool on a device: not exportable, no maximum.
    public static MemoryPoolProperties onDevice(int device) {
        return new MemoryPoolProperties(MemoryLocation.device(device), 0, 0);
    }
}
