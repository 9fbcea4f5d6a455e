package io.cistern.cuda;

/// Ways to export memory to another process, with the bits of `CUmemAllocationHandleType`.
public enum HandleType {
    /// Not exportable.
    NONE(0),
    /// As a POSIX file descriptor.
    POSIX_FILE_DESCRIPTOR(1),
    /// As a fabric handle, which also works between hosts; needs an IMEX channel.
    FABRIC(8);

    private final int bit;

    HandleType(int bit) {
        this.bit = bit;
    }

    /// Returns the bit in `CUmemAllocationHandleType`.
    public int bit() {
        return bit;
    }
}
