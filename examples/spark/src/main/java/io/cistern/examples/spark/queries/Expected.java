package io.cistern.examples.spark.queries;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The results of DuckDB over the same data, which the tests wrote.
public final class Expected {
    static final long SEED = 1_000_000;

    private Expected() {}

    static String fileName(double scale) {
        return "results-" + (scale == Math.rint(scale) ? Long.toString((long) scale) : Double.toString(scale)) + ".txt";
    }

    /// Returns the results at a scale; null if there are none.
    public static @Nullable Map<Query, List<String>> read(double scale) throws IOException {
        try (InputStream in = Expected.class.getResourceAsStream(fileName(scale))) {
            if (in == null) {
                return null;
            }
            Map<Query, List<String>> results = new EnumMap<>(Query.class);
            List<String> rows = new ArrayList<>();
            for (String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n", 0)) {
                if (line.startsWith("== ")) {
                    rows = new ArrayList<>();
                    results.put(Query.valueOf(line.substring(3)), rows);
                } else {
                    rows.add(line);
                }
            }
            return results;
        }
    }
}
