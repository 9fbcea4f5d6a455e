package io.cistern.cli.common;

import io.cistern.cuda.settings.ByteSizes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Lets picocli read the memory of a device, such as `8GiB`.
public final class ByteSizeConverter implements ITypeConverter<Long> {
    private static final long LEAST_BYTES = 1 << 20;

    @Override
    public Long convert(String value) {
        String size = value.strip();
        if (ByteSizes.isShare(size) && !size.endsWith("%")) {
            throw new TypeConversionException("'" + value + "' has no unit; write " + size + "GiB");
        }
        try {
            if (size.startsWith("-") ? ByteSizes.parse(size.substring(1)) >= 0 : ByteSizes.parse(size) < LEAST_BYTES) {
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
