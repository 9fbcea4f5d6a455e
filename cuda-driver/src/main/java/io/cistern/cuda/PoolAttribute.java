package io.cistern.cuda;

/// Attributes of a pool, with the numbers of `CUmemPool_attribute`.
public enum PoolAttribute {
    /// 1: memory freed on one stream is reused on another that waited for the free by events.
    REUSE_FOLLOW_EVENT_DEPENDENCIES(1, true),
    /// 1: memory whose free has already completed is reused on any stream.
    REUSE_ALLOW_OPPORTUNISTIC(2, true),
    /// 1: the driver may insert a wait so that memory can be reused on another stream.
    REUSE_ALLOW_INTERNAL_DEPENDENCIES(3, true),
    /// Bytes that the pool keeps at a synchronisation.
    RELEASE_THRESHOLD(4, false),
    /// Bytes the pool holds.
    RESERVED_CURRENT(5, false),
    /// Most bytes the pool held since the last reset.
    RESERVED_HIGH(6, false),
    /// Bytes handed out and not taken back by [MemoryPools#free].
    USED_CURRENT(7, false),
    /// Most bytes handed out since the last reset.
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

    /// Returns whether the driver stores it as a 32-bit `int`; otherwise it is a 64-bit unsigned number.
    public boolean isInt() {
        return isInt;
    }
}
