package io.cistern.benchmarks.generated;

import io.cistern.cli.trace.Trace;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.GZIPInputStream;

/// Writes a bundled trace, or a generated one as CSV of format 2, for `cistern replay` and for peers.
///
/// Arguments: the name of the trace; if it is generated, the device's memory in bytes (16 GiB) and the seed (1).
public final class WriteTrace {
    private WriteTrace() {}

    /// Writes the trace to standard output.
    public static void main(String[] arguments) throws IOException {
        try (InputStream bundled =
                Trace.class.getResourceAsStream("/io/cistern/cli/traces/" + arguments[0] + ".csv.gz")) {
            if (bundled != null) {
                new GZIPInputStream(bundled).transferTo(System.out);
            } else {
                GeneratedTrace trace = GeneratedTrace.named(arguments[0])
                        .orElseThrow(() -> new IllegalArgumentException("generated: " + GeneratedTrace.labels()));
                System.out.print(trace.csv(
                        arguments.length > 2 ? Long.parseLong(arguments[2]) : GeneratedTrace.USUAL_SEED,
                        arguments.length > 1 ? Long.parseLong(arguments[1]) : GeneratedTrace.USUAL_CAPACITY_BYTES));
            }
        }
        System.out.flush();
    }
}
