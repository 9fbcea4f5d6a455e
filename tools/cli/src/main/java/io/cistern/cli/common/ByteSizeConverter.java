package io.cistern.cli.common;

import io.cistern.cuda.settings.ByteSizes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Lets picocli read sizes such as `8GiB` as numbers.
public final class ByteSizeConverter implements ITypeConverter<Long> {
    @Override
    public Long convert(String value) {
        if (ByteSizes.isShare(value) && !value.endsWith("%")) {
            throw new TypeConversionException("'" + value + "' has no unit; write " + value.strip() + "GiB");
        }
        try {
            return ByteSize.parse(value);
        } catch (IllegalArgumentException e) {
            throw new TypeConversionException(String.valueOf(e.getMessage()));
        }
    }
}
