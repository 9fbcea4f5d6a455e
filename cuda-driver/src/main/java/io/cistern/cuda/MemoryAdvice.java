package io.cistern.cuda;

/// What a program says of the use of managed memory, with the numbers of `CUmem_advise`.
public enum MemoryAdvice {
    /// It is read far more than written: each place that reads has a copy of its own.
    SET_READ_MOSTLY(1),
    /// Takes that back.
    UNSET_READ_MOSTLY(2),
    /// It is to live at the place, and is mapped for others rather than moved to them, where they can be.
    SET_PREFERRED_LOCATION(3),
    /// Takes that back.
    UNSET_PREFERRED_LOCATION(4),
    /// The place uses it: it is to be mapped there at all times, so that no use faults.
    SET_ACCESSED_BY(5),
    /// Takes that back.
    UNSET_ACCESSED_BY(6);

    private final int code;

    MemoryAdvice(int code) {
        this.code = code;
    }

    /// The number in `CUmem_advise`.
    public int code() {
        return code;
    }
}
