package io.cistern.cli;

import java.io.PrintWriter;

/// Writes results as programs read them: as lines, or as one array, which is whole even if a later result fails. As
/// text it writes nothing, since a table needs them all.
final class ResultWriter implements AutoCloseable {
    private final OutputFormat format;
    private final PrintWriter out;
    private String before = "[\n";

    ResultWriter(OutputFormat format, PrintWriter out) {
        this.format = format;
        this.out = out;
    }

    /// Writes one result.
    ///
    /// @param json an object on one line
    void write(String json) {
        switch (format) {
            case TEXT -> {}
            case JSON -> {
                out.print(before + json);
                before = ",\n";
            }
            case JSONL -> out.print(json + "\n");
        }
        out.flush();
    }

    @Override
    public void close() {
        if (format == OutputFormat.JSON) {
            out.print(before.startsWith("[") ? "[]\n" : "\n]\n");
            out.flush();
        }
    }
}
