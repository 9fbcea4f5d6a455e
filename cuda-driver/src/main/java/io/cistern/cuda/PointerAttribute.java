package io.cistern.cuda;

/// Facts that the driver knows about a pointer, with the numbers of `CUpointer_attribute`.
public enum PointerAttribute {
    /// The context that made the allocation; 0 for memory of pools and mappings.
    CONTEXT(1),
    /// 1 host, 2 device, 4 unified.
    MEMORY_TYPE(2),
    /// A number that no other allocation of this process ever has.
    BUFFER_ID(7),
    /// 1 for managed memory.
    IS_MANAGED(8),
    /// The device on which the memory lives.
    DEVICE_ORDINAL(9),
    /// First address of the allocation.
    RANGE_START(11),
    /// Bytes of the allocation.
    RANGE_SIZE(12),
    /// 1 if the address is backed by memory.
    MAPPED(13),
    /// Bits of the handle types that it may be exported as.
    ALLOWED_HANDLE_TYPES(14),
    /// 3 if the device may read and write it.
    ACCESS_FLAGS(16),
    /// The pool it came from, or 0.
    MEMPOOL_HANDLE(17);

    private final int code;

    PointerAttribute(int code) {
        this.code = code;
    }

    /// Returns the number in `CUpointer_attribute`.
    public int code() {
        return code;
    }
}
