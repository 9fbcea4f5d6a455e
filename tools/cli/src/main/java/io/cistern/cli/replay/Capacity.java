package io.cistern.cli.replay;

import io.cistern.cli.common.ByteSize;
import io.cistern.simulated.SimulatedGpu;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// The memory limit of a replay: a number of bytes, or a multiple of the peak that its trace requests.
///
/// @param bytes the number; 0 for a multiple
/// @param peaks the multiple; 0 for a number
record Capacity(long bytes, double peaks) {
    private static final Pattern MULTIPLE = Pattern.compile("(\\d{1,4}(?:\\.\\d{1,9})?)x");

    /// @throws IllegalArgumentException if the text is neither; the message says what is legal
    static Capacity parse(String text) {
        Matcher multiple = MULTIPLE.matcher(text.trim());
        if (!multiple.matches()) {
            return new Capacity(ByteSize.parse(text), 0);
        }
        double peaks = Double.parseDouble(multiple.group(1));
        if (peaks == 0) {
            throw new IllegalArgumentException("not a multiple of a trace's peak: " + text);
        }
        return new Capacity(0, peaks);
    }

    boolean isOfEachTrace() {
        return peaks > 0;
    }

    /// Returns the limit for a trace, in bytes.
    ///
    /// @param requestedPeakBytes the trace's peak of live bytes
    long bytesFor(long requestedPeakBytes) {
        return isOfEachTrace()
                ? Math.clamp((long) (peaks * requestedPeakBytes), 1, SimulatedGpu.MAX_CAPACITY_BYTES)
                : bytes;
    }

    /// Lets picocli read `8GiB` and `1.02x`.
    static final class Converter implements ITypeConverter<Capacity> {
        @Override
        public Capacity convert(String value) {
            try {
                return parse(value);
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(String.valueOf(e.getMessage()));
            }
        }
    }
}
