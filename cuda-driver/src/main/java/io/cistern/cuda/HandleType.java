package io.cistern.cuda;

/// Ways to export memory to another process, with the bits of `CUmemAllocationHandleType`.
public enum HandleType {
    /// Not exportable.
    NONE(0, "none"),
    /// As a POSIX file descriptor.
    POSIX_FILE_DESCRIPTOR(1, "posix_fd"),
    /// As a fabric handle, which also works between hosts; needs an IMEX channel.
    FABRIC(8, "fabric");

    private final int bit;
    private final String word;

    HandleType(int bit, String word) {
        this.bit = bit;
        this.word = word;
    }

    /// Returns the bit in `CUmemAllocationHandleType`.
    public int bit() {
        return bit;
    }

    /// Returns the word that options use.
    public String word() {
        return word;
    }
}
