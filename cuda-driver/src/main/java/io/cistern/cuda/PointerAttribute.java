package io.cistern.cuda;

/// Attributes of a pointer, with the numbers of `CUpointer_attribute`.
public enum PointerAttribute {
    /// The context in which the memory was allocated; 0 for memory of pools and mappings.
    CONTEXT(1),
    /// The type of memory: 1 for host, 2 for device, 4 for unified.
    MEMORY_TYPE(2),
    /// A number that identifies the allocation and is never reused in this process.
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
    /// The access rights of the device, as the numbers of [AccessRights]: 3 if it may read and write the
    /// memory.
    ACCESS_FLAGS(16),
    /// The pool that the memory came from, or 0.
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
