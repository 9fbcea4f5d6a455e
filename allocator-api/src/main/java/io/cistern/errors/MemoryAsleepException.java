package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown by a call that needs memory of a pool that is [asleep][io.cistern.MemoryPool#sleep]. The call has
/// changed nothing, and can be repeated after [io.cistern.MemoryPool#wake].
public final class MemoryAsleepException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long address;
    private final int device;

    /// Creates an exception.
    ///
    /// @param pool a human-readable name of the pool
    /// @param address the address of the block that was to be used; 0 for an allocation
    public MemoryAsleepException(String pool, int device, long address) {
        super((address == 0 ? "nothing can be allocated" : "block 0x" + Long.toHexString(address) + " can't be used")
                + " on device " + device + ": " + pool + " is asleep; wake it first");
        this.address = address;
        this.device = device;
    }

    /// Returns the address of the block that was to be used; 0 for an allocation.
    public long address() {
        return address;
    }

    /// Returns the device of the pool's memory.
    public int device() {
        return device;
    }
}
