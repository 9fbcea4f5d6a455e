package io.cistern.examples.spark.queries;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// What DuckDB makes of the queries, over the same data.
final class DuckDbResults {
    private DuckDbResults() {}

    /// Writes the results that the program compares with: `SCALE … FOLDER`. A scale needs about a gigabyte.
    public static void main(String[] arguments) throws IOException, SQLException {
        Path folder = Path.of(arguments[arguments.length - 1]);
        for (String scale : List.of(arguments).subList(0, arguments.length - 1)) {
            List<String> lines = new ArrayList<>();
            of(Double.parseDouble(scale)).forEach((query, rows) -> {
                lines.add("== " + query);
                lines.addAll(rows);
            });
            Files.write(folder.resolve(Expected.fileName(Double.parseDouble(scale))), lines);
        }
    }

    static Map<Query, List<String>> of(double scale) throws SQLException {
        Map<Query, List<String>> results = new EnumMap<>(Query.class);
        try (Connection connection = DriverManager.getConnection("jdbc:duckdb:");
                Statement statement = connection.createStatement()) {
            for (String each : Tables.sql(scale, Expected.SEED)) {
                statement.execute(each);
            }
            for (Query query : Query.values()) {
                results.put(query, rows(statement, query.sql()));
            }
        }
        return results;
    }

    private static List<String> rows(Statement statement, String sql) throws SQLException {
        List<String> rows = new ArrayList<>();
        try (ResultSet result = statement.executeQuery(sql)) {
            int columns = result.getMetaData().getColumnCount();
            while (result.next()) {
                List<String> values = new ArrayList<>();
                for (int column = 1; column <= columns; column++) {
                    values.add(result.getString(column));
                }
                rows.add(String.join("|", values));
            }
        }
        return rows;
    }
}
