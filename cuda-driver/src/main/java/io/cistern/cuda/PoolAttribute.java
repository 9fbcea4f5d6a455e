package io.cistern.cuda;

/// Attributes of a pool, with the numbers of `CUmemPool_attribute`.
public enum PoolAttribute {
    /// 1 if memory that was freed on one stream may be reused on another stream that waited for the free by an
    /// event, else 0.
    REUSE_FOLLOW_EVENT_DEPENDENCIES(1, true),
    /// 1 if memory whose free has already completed may be reused on any stream, else 0.
    REUSE_ALLOW_OPPORTUNISTIC(2, true),
    /// 1 if the driver may make a stream wait for another one in order to reuse memory, else 0.
    REUSE_ALLOW_INTERNAL_DEPENDENCIES(3, true),
    /// Bytes that the pool may keep at a synchronisation instead of returning them to the device.
    RELEASE_THRESHOLD(4, false),
    /// Bytes of memory that the pool holds, used or not.
    RESERVED_CURRENT(5, false),
    /// Most bytes that the pool held since the last reset.
    RESERVED_HIGH(6, false),
    /// Bytes that were allocated and not yet freed by [MemoryPools#free].
    USED_CURRENT(7, false),
    /// Most bytes in use since the last reset.
    USED_HIGH(8, false);

    private final int code;
    private final boolean isInt;

    PoolAttribute(int code, boolean isInt) {
        this.code = code;
        this.isInt = isInt;
    }

    /// Returns the number in `CUmemPool_attribute`.
    public int code() {
        return code;
    }

    /// Returns whether the driver stores this attribute as a 32-bit `int`; otherwise it is a 64-bit unsigned
    /// number.
    public boolean isInt() {
        return isInt;
    }
}
