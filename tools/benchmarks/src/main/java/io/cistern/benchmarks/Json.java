package io.cistern.benchmarks;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.LinkedHashMap;
import java.util.Map;

/// Prints results: a JSON object a line.
public final class Json {
    private Json() {}

    /// Prints an object of names and their values, in turn.
    public static void print(Object... namesAndValues) {
        Map<Object, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            fields.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        try {
            System.out.println(JSON.std.asString(fields));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Rounds a value to that many digits after the point.
    public static BigDecimal rounded(double value, int digits) {
        return BigDecimal.valueOf(value).setScale(digits, RoundingMode.HALF_UP);
    }
}
