package io.cistern.cli.common;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Writes results for programs: as lines, or as one array that stays valid JSON even if a later result fails.
/// It writes nothing in text format, because a table needs all results.
public final class ResultWriter implements AutoCloseable {
    private static final JSON WITH_NULLS = JSON.std.with(JSON.Feature.WRITE_NULL_PROPERTIES);

    private final OutputFormat format;
    private final PrintWriter out;
    private String before = "[\n";

    public ResultWriter(OutputFormat format, PrintWriter out) {
        this.format = format;
        this.out = out;
    }

    /// Writes one result.
    ///
    /// @param fields the fields of a JSON object
    public void write(Map<String, @Nullable Object> fields) {
        switch (format) {
            case TEXT -> {}
            case JSON -> {
                out.print(before + line(fields));
                before = ",\n";
            }
            case JSONL -> out.print(line(fields) + "\n");
        }
        out.flush();
    }

    /// Formats an object on one line; fields that are null appear.
    public static String line(Map<String, @Nullable Object> fields) {
        try {
            return WITH_NULLS.asString(fields);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Returns the fields of a JSON object.
    ///
    /// @param fields names and values in turn
    public static Map<String, @Nullable Object> object(@Nullable Object... fields) {
        Map<String, @Nullable Object> object = new LinkedHashMap<>();
        for (int i = 0; i < fields.length; i += 2) {
            object.put(String.valueOf(fields[i]), fields[i + 1]);
        }
        return object;
    }

    /// Returns a number, or null if there is none.
    public static @Nullable Long orNull(OptionalLong number) {
        return number.isPresent() ? number.getAsLong() : null;
    }

    /// Returns a number, or null if there is none.
    public static @Nullable Double orNull(OptionalDouble number) {
        return number.isPresent() ? number.getAsDouble() : null;
    }

    /// Returns the objects of an array, which are made as they are written.
    public static <T> Iterable<Map<String, @Nullable Object>> array(
            Collection<T> parts, Function<T, Map<String, @Nullable Object>> object) {
        return () -> parts.stream().map(object).iterator();
    }

    @Override
    public void close() {
        if (format == OutputFormat.JSON) {
            out.print(before.startsWith("[") ? "[]\n" : "\n]\n");
            out.flush();
        }
    }
}
