package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Memory was to be used whose pool is [asleep][io.cistern.MemoryPool#sleep]. Nothing was done; after
/// [io.cistern.MemoryPool#wake] the
/// same call works.
public final class MemoryAsleepException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long address;
    private final int device;

    /// Says what is asleep.
    ///
    /// @param pool what people call it
    /// @param address the block that was to be used, or 0 for an allocation
    public MemoryAsleepException(String pool, int device, long address) {
        super((address == 0 ? "nothing can be allocated" : "block 0x" + Long.toHexString(address) + " can't be used")
                + " on device " + device + ": " + pool + " is asleep; wake it first");
        this.address = address;
        this.device = device;
    }

    /// The block that was to be used; 0 for an allocation.
    public long address() {
        return address;
    }

    /// The device of the pool's memory.
    public int device() {
        return device;
    }
}
