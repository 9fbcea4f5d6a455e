package io.cistern.nccl;

/// The type of elements, with the numbers of `ncclDataType_t`.
public enum DataType {
    /// Signed, 8 bits.
    INT8(0, 1, 0),
    /// Unsigned, 8 bits.
    UINT8(1, 1, 0),
    /// Signed, 32 bits.
    INT32(2, 4, 0),
    /// Unsigned, 32 bits.
    UINT32(3, 4, 0),
    /// Signed, 64 bits.
    INT64(4, 8, 0),
    /// Unsigned, 64 bits.
    UINT64(5, 8, 0),
    /// IEEE half precision.
    FLOAT16(6, 2, 0),
    /// IEEE single precision.
    FLOAT32(7, 4, 0),
    /// IEEE double precision.
    FLOAT64(8, 8, 0),
    /// The upper half of IEEE single precision.
    BFLOAT16(9, 2, 0),
    /// 8 bits, 4 of them exponent; no infinities. Needs NCCL 2.24.3 and compute capability 9.0.
    FLOAT8_E4M3(10, 1, 22403),
    /// 8 bits, 5 of them exponent. Needs NCCL 2.24.3 and compute capability 9.0.
    FLOAT8_E5M2(11, 1, 22403);

    private final int code;
    private final int byteSize;
    private final int sinceVersion;

    DataType(int code, int byteSize, int sinceVersion) {
        this.code = code;
        this.byteSize = byteSize;
        this.sinceVersion = sinceVersion;
    }

    /// Returns the number in `ncclDataType_t`.
    public int code() {
        return code;
    }

    /// Returns the size of one element in bytes; addresses must be multiples of it.
    public int byteSize() {
        return byteSize;
    }

    /// Returns the first version of NCCL that has it, as `ncclGetVersion` codes it; 0 if all supported versions
    /// do.
    int sinceVersion() {
        return sinceVersion;
    }
}
