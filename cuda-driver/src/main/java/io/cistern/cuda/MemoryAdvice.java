package io.cistern.cuda;

/// Hints about the use of managed memory, with the numbers of `CUmem_advise`.
public enum MemoryAdvice {
    /// The memory is read far more than written: each place that reads it has its own copy.
    SET_READ_MOSTLY(1),
    /// Cancels [#SET_READ_MOSTLY].
    UNSET_READ_MOSTLY(2),
    /// The memory should reside at the place. Other places map it instead of moving it, if they can.
    SET_PREFERRED_LOCATION(3),
    /// Cancels [#SET_PREFERRED_LOCATION].
    UNSET_PREFERRED_LOCATION(4),
    /// The place uses the memory: it should always be mapped there, so that accesses do not fault.
    SET_ACCESSED_BY(5),
    /// Cancels [#SET_ACCESSED_BY].
    UNSET_ACCESSED_BY(6);

    private final int code;

    MemoryAdvice(int code) {
        this.code = code;
    }

    /// Returns the number in `CUmem_advise`.
    public int code() {
        return code;
    }
}
