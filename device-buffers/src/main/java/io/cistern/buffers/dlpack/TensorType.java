package io.cistern.buffers.dlpack;

/// The type of a tensor's elements (`DLDataType`).
///
/// @param code the kind of number, as `DLDataTypeCode`: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex,
///     6 boolean, 7 to 14 floats of 8 bits, 15 and 16 floats of 6 bits, 17 floats of 4 bits
/// @param bits bits of one number; for a complex number, those of both parts together
/// @param lanes numbers in an element; 1 except for vector types, such as two floats of 4 bits in a byte
public record TensorType(int code, int bits, int lanes) {
    public static final TensorType INT8 = new TensorType(0, 8, 1);
    public static final TensorType INT16 = new TensorType(0, 16, 1);
    public static final TensorType INT32 = new TensorType(0, 32, 1);
    public static final TensorType INT64 = new TensorType(0, 64, 1);
    public static final TensorType UINT8 = new TensorType(1, 8, 1);
    public static final TensorType UINT16 = new TensorType(1, 16, 1);
    public static final TensorType UINT32 = new TensorType(1, 32, 1);
    public static final TensorType UINT64 = new TensorType(1, 64, 1);
    public static final TensorType FLOAT16 = new TensorType(2, 16, 1);
    public static final TensorType FLOAT32 = new TensorType(2, 32, 1);
    public static final TensorType FLOAT64 = new TensorType(2, 64, 1);
    public static final TensorType BFLOAT16 = new TensorType(4, 16, 1);
    public static final TensorType COMPLEX64 = new TensorType(5, 64, 1);
    public static final TensorType COMPLEX128 = new TensorType(5, 128, 1);
    public static final TensorType BOOL = new TensorType(6, 8, 1);
    public static final TensorType FLOAT8_E4M3FN = new TensorType(10, 8, 1);
    public static final TensorType FLOAT8_E5M2 = new TensorType(12, 8, 1);
    public static final TensorType FLOAT8_E8M0FNU = new TensorType(14, 8, 1);

    /// PyTorch's `float4_e2m1fn_x2`: two numbers in a byte.
    public static final TensorType FLOAT4_E2M1FN_X2 = new TensorType(17, 4, 2);

    private static final int COMPLEX = 5;

    /// Creates a type whose elements take whole bytes.
    ///
    /// @throws IllegalArgumentException if an element would take parts of bytes, or if an argument does not
    ///     fit its field of `DLDataType`
    public TensorType {
        boolean fits = code >= 0 && code < 256 && bits > 0 && bits < 256 && lanes > 0 && lanes < 65_536;
        if (!fits || bits * lanes % 8 != 0) {
            throw new IllegalArgumentException("elements of code " + code + ", " + bits + " bits, " + lanes
                    + " lanes: an element must be whole bytes, as two lanes of 4 bits are");
        }
    }

    /// Returns the bytes of an element.
    public int byteSize() {
        return bits * lanes / 8;
    }

    /// Returns the alignment of an element's address.
    int byteAlignment() {
        return Math.max(1, Integer.highestOneBit(code == COMPLEX ? bits / 16 : bits / 8));
    }
}
