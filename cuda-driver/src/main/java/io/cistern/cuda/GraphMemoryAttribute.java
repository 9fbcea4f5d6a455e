package io.cistern.cuda;

/// Counters for the memory of all graphs of a device, with the numbers of `CUgraphMem_attribute`.
public enum GraphMemoryAttribute {
    /// Bytes that graphs use.
    USED_CURRENT(0),
    /// Most bytes that graphs used since the last reset.
    USED_HIGH(1),
    /// Bytes that the driver keeps for graphs.
    RESERVED_CURRENT(2),
    /// Most bytes that the driver kept for graphs since the last reset.
    RESERVED_HIGH(3);

    private final int code;

    GraphMemoryAttribute(int code) {
        this.code = code;
    }

    /// Returns the number in `CUgraphMem_attribute`.
    public int code() {
        return code;
    }
}
