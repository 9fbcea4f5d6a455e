package io.cistern.cuda;

/// The access rights of a device to memory, with the numbers of `CUmemAccess_flags`.
public enum AccessRights {
    /// No access.
    NONE(0),
    /// Read only.
    READ(1),
    /// Read and write.
    READ_WRITE(3);

    private final int code;

    AccessRights(int code) {
        this.code = code;
    }

    /// Returns the number in `CUmemAccess_flags`.
    public int code() {
        return code;
    }

    /// Returns the constant for a number.
    ///
    /// @throws IllegalArgumentException if no constant has this number
    public static AccessRights of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 1 -> READ;
            case 3 -> READ_WRITE;
            default -> throw new IllegalArgumentException("not CUmemAccess_flags: " + code);
        };
    }
}
