package io.cistern.cli.common;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.simulated.SimulatedGpu;
import java.math.BigDecimal;
import java.math.RoundingMode;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Reads sizes of devices as people write them, and formats numbers of bytes for tables.
public final class ByteSize {
    private ByteSize() {}

    /// Reads the memory size of a device, in the notation of specs and settings.
    ///
    /// @return bytes, 1 to the largest capacity of a simulated GPU
    /// @throws IllegalArgumentException if the text is not such a size; the message says what is legal
    public static long parse(String text) {
        long bytes = ByteSizes.parse(text);
        if (bytes < 1 || bytes > SimulatedGpu.MAX_CAPACITY_BYTES) {
            throw new IllegalArgumentException(
                    "'" + text + "' is not between 1 byte and " + ByteSizes.print(SimulatedGpu.MAX_CAPACITY_BYTES));
        }
        return bytes;
    }

    /// Returns the largest unit up to GiB of which a number of bytes has at least one: `GiB`, `MiB`, `KiB`.
    public static String unit(long bytes) {
        return bytes >= 1L << 30 ? "GiB" : bytes >= 1L << 20 ? "MiB" : "KiB";
    }

    /// Formats bytes with three to four digits and a unit: `640 B`, `2.00 MiB`, `12.3 GiB`.
    public static String format(long bytes) {
        return ByteSizes.format(bytes);
    }

    /// Formats bytes as [#format] does, but rounds up, so that a device with as much is large enough.
    public static String formatUp(long bytes) {
        int power = bytes < 1024 ? 0 : (63 - Long.numberOfLeadingZeros(bytes)) / 10;
        double value = (double) bytes / (1L << (10 * power));
        int decimals = power == 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
        BigDecimal up = new BigDecimal(value).setScale(decimals, RoundingMode.CEILING);
        return up.toPlainString() + (power == 0 ? " B" : " " + "KMGTPE".charAt(power - 1) + "iB");
    }

    /// Lets picocli read the memory of a device, such as `8GiB`.
    public static final class Converter implements ITypeConverter<Long> {
        private static final long LEAST_BYTES = 1 << 20;

        @Override
        public Long convert(String value) {
            String size = value.strip();
            if (ByteSizes.isShare(size) && !size.endsWith("%")) {
                throw new TypeConversionException("'" + value + "' has no unit; write " + size + "GiB");
            }
            try {
                if (size.startsWith("-")
                        ? ByteSizes.parse(size.substring(1)) >= 0
                        : ByteSizes.parse(size) < LEAST_BYTES) {
                    throw new TypeConversionException("'" + value + "' is less than 1MiB; write "
                            + (size.matches("[1-9]\\d{0,3}")
                                    ? size + "GiB or " + size + "MiB"
                                    : "it like 512MiB or 23.5GiB"));
                }
                return ByteSize.parse(size);
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(String.valueOf(e.getMessage()));
            }
        }
    }
}
