package io.cistern;

/// Hears from the driver that this process uses more memory of a device than it should: see
/// [DeviceMemory#onOverBudget].
@FunctionalInterface
public interface OverBudgetListener {
    /// Acts on it, by a trim for example. Called on a thread of its own, one call at a time, outside all locks:
    /// it may allocate, free, trim and wait. What it throws is logged.
    ///
    /// @param device the device
    /// @param bytesOverBudget how much more, as the driver said last
    void overBudget(int device, long bytesOverBudget);
}
