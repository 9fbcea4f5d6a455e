package io.cistern.nccl;

/// Converts floating-point numbers of 8 and 16 bits that Java lacks.
///
/// ```
/// bfloat16   s eeeeeeee mmmmmmm     the upper half of a float
/// e5m2       s eeeee mm             the upper half of a half
/// e4m3       s eeee mmm             bias 7, no infinity: s 1111 111 is NaN, and larger values become ±448
/// ```
final class SmallFloats {
    private static final float LARGEST_E4M3 = 448;
    private static final int E4M3_BIAS = 7;
    private static final byte E4M3_NAN = 0x7f;

    private SmallFloats() {}

    static float fromBfloat16(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /// Rounds to the nearest value, ties to even.
    static short toBfloat16(float value) {
        if (Float.isNaN(value)) {
            return 0x7fc0;
        }
        int bits = Float.floatToRawIntBits(value);
        return (short) ((bits + 0x7fff + (bits >>> 16 & 1)) >>> 16);
    }

    static float fromE5m2(byte bits) {
        return Float.float16ToFloat((short) (bits << 8));
    }

    /// Rounds to the nearest value, ties to even.
    static byte toE5m2(float value) {
        if (Float.isNaN(value)) {
            return 0x7f;
        }
        int half = Float.floatToFloat16(value) & 0xffff;
        return (byte) ((half + 0x7f + (half >>> 8 & 1)) >>> 8);
    }

    static float fromE4m3(byte bits) {
        int exponent = bits >>> 3 & 0xf;
        int mantissa = bits & 7;
        float sign = bits < 0 ? -1 : 1;
        if (exponent == 0xf && mantissa == 7) {
            return Float.NaN;
        }
        return exponent == 0
                ? sign * Math.scalb((float) mantissa, 1 - E4M3_BIAS - 3)
                : sign * Math.scalb(8f + mantissa, exponent - E4M3_BIAS - 3);
    }

    /// Rounds to the nearest value, ties to even.
    static byte toE4m3(float value) {
        if (Float.isNaN(value)) {
            return E4M3_NAN;
        }
        float size = Math.min(Math.abs(value), LARGEST_E4M3);
        int sign = Float.floatToRawIntBits(value) < 0 ? 0x80 : 0;
        int exponent = Math.max(Math.getExponent(size), 1 - E4M3_BIAS);
        int steps = (int) Math.rint(Math.scalb((double) size, 3 - exponent));
        int code = ((exponent + E4M3_BIAS - 1) << 3) + steps;
        return (byte) (sign | code);
    }
}
