package io.cistern.cli.common;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes results as programs read them: as lines, or as one array, which is whole even if a later result fails. As
/// text it writes nothing, since a table needs them all.
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
    /// @param fields of a JSON object
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

    /// An object on one line, with the fields that are null.
    public static String line(Map<String, @Nullable Object> fields) {
        try {
            return WITH_NULLS.asString(fields);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        if (format == OutputFormat.JSON) {
            out.print(before.startsWith("[") ? "[]\n" : "\n]\n");
            out.flush();
        }
    }
}
