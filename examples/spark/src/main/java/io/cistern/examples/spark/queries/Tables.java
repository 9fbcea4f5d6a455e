package io.cistern.examples.spark.queries;

import io.cistern.examples.spark.engine.Column;
import io.cistern.examples.spark.engine.Operators;
import io.cistern.examples.spark.engine.Operators.Calculation;
import io.cistern.examples.spark.engine.Strings;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/// The tables of TPC-H, as far as the queries need them, on a device. Each value follows from its row's
/// number and a seed, so that SQL [defines][#sql] the same data. Money is in cents, dates are days since
/// the first one, and names of which there are few are numbers.
final class Tables {
    /// The last day of an order.
    private static final long DAYS = 2_406;

    /// The words of texts.
    private static final List<String> WORDS = List.of(
            ("almond antique azure beige blanched blue brown burnished chiffon chocolate coral cornflower cream cyan"
                            + " forest green honeydew indian ivory khaki lace lavender lemon magenta maroon medium"
                            + " metallic midnight misty moccasin navajo olive accounts blithely carefully deposits"
                            + " excuses express fluffily foxes furiously ideas instructions ironic packages pending"
                            + " pinto platelets quickly regular requests silent slyly special theodolites unusual"
                            + " ruthless sleep wake haggle nag boost detect bold")
                    .split(" ", 0));

    /// The tables of which a slice has a part.
    private static final Set<String> SLICED = Set.of("lineitem", "orders", "partsupp");

    private static final Map<String, Map<String, Values>> DEFINITIONS = new LinkedHashMap<>();

    /// How the values of a column follow from rows' numbers.
    private sealed interface Values {
        String sql(double scale, long seed);
    }

    /// The row's number divided by a number.
    private record Key(long divisor) implements Values {
        @Override
        public String sql(double scale, long seed) {
            return "i // " + divisor;
        }
    }

    /// The sum of numbers drawn.
    private record Numbers(List<Draw> draws) implements Values {
        @Override
        public String sql(double scale, long seed) {
            return draws.stream()
                    .map(draw -> "%d + drawn(i // %d, %d, %d)"
                            .formatted(draw.base, draw.divisor, draw.salt + seed, range(draw.range, scale)))
                    .collect(Collectors.joining(" + "));
        }
    }

    /// A number from `base` up to `base + range`, the same for as many rows as the divisor says. A negative
    /// range stands for the rows of another table at scale 1.
    private record Draw(long divisor, long salt, long range, long base) {}

    /// Words drawn from the first ones of all.
    private record Texts(long perRow, long range, long salt) implements Values {
        @Override
        public String sql(double scale, long seed) {
            List<String> words = new ArrayList<>();
            for (long at = 0; at < perRow; at++) {
                words.add("word(1 + drawn(i, %d, %d))".formatted(salt + at + seed, range));
            }
            return String.join(" || ' ' || ", words);
        }
    }

    private static Numbers numbers(long salt, long base, long range) {
        return new Numbers(List.of(new Draw(1, salt, range, base)));
    }

    static {
        Draw orderDate = new Draw(4, 2_100, DAYS, 0);
        Draw shipDelay = new Draw(1, 1_900, 121, 1);
        column("lineitem", "l_orderkey", new Key(4));
        column("lineitem", "l_partkey", numbers(1_100, 0, -200_000));
        column("lineitem", "l_suppkey", numbers(1_200, 0, -10_000));
        column("lineitem", "l_quantity", numbers(1_300, 1, 50));
        column("lineitem", "l_extendedprice", numbers(1_400, 90_000, 10_000_000));
        column("lineitem", "l_discount", numbers(1_500, 0, 11));
        column("lineitem", "l_tax", numbers(1_600, 0, 9));
        column("lineitem", "l_returnflag", numbers(1_700, 0, 3));
        column("lineitem", "l_linestatus", numbers(1_800, 0, 2));
        column("lineitem", "l_shipdate", new Numbers(List.of(orderDate, shipDelay)));
        column("lineitem", "l_commitdate", new Numbers(List.of(orderDate, new Draw(1, 2_000, 61, 30))));
        column("lineitem", "l_receiptdate", new Numbers(List.of(orderDate, shipDelay, new Draw(1, 2_050, 30, 1))));
        column("orders", "o_orderkey", new Key(1));
        column("orders", "o_custkey", numbers(2_200, 0, -150_000));
        column("orders", "o_orderdate", numbers(2_100, 0, DAYS));
        column("orders", "o_totalprice", numbers(2_300, 100_000, 50_000_000));
        column("orders", "o_orderpriority", numbers(2_400, 0, 5));
        column("orders", "o_comment", new Texts(6, 64, 2_500));
        column("customer", "c_custkey", new Key(1));
        column("customer", "c_nationkey", numbers(3_100, 0, 25));
        column("customer", "c_mktsegment", numbers(3_200, 0, 5));
        column("customer", "c_acctbal", numbers(3_300, -99_999, 1_099_999));
        column("supplier", "s_suppkey", new Key(1));
        column("supplier", "s_nationkey", numbers(4_100, 0, 25));
        column("part", "p_partkey", new Key(1));
        column("part", "p_name", new Texts(4, 32, 5_100));
        column("part", "p_brand", numbers(5_200, 0, 25));
        column("part", "p_type", new Texts(2, 8, 5_300));
        column("part", "p_size", numbers(5_400, 1, 50));
        column("partsupp", "ps_partkey", new Key(4));
        column("partsupp", "ps_suppkey", numbers(6_100, 0, -10_000));
    }

    private static void column(String table, String name, Values values) {
        DEFINITIONS.computeIfAbsent(table, _ -> new LinkedHashMap<>()).put(name, values);
    }

    private final Map<String, Column> numbers = new HashMap<>();
    private final Map<String, Strings> texts = new HashMap<>();

    /// Draws the data.
    ///
    /// @param operators allocate the columns, which live as long as these
    /// @param scale 1 for six million lines
    /// @param slice the rows of `orders`, and the parts with rows of `partsupp`, that the tables have; the rows
    ///     of `lineitem` are those of the orders, and the other tables are whole
    Tables(Operators operators, double scale, long seed, Slice slice) {
        DEFINITIONS.forEach((table, columns) -> {
            Rows rows = rows(table, scale, slice);
            columns.forEach((name, values) -> {
                switch (values) {
                    case Key key -> numbers.put(name, key(operators, rows, key.divisor));
                    case Numbers drawn -> numbers.put(name, drawn(operators, rows, drawn.draws, scale, seed));
                    case Texts drawn ->
                        texts.put(
                                name,
                                operators.drawTexts(
                                        rows.first, rows.count, WORDS, drawn.perRow, drawn.range, drawn.salt + seed));
                }
            });
        });
    }

    private record Rows(long first, long count) {}

    private static Rows rows(String table, double scale, Slice slice) {
        long count = rowCount(table, scale);
        if (!SLICED.contains(table)) {
            return new Rows(0, count);
        }
        long together = table.equals("orders") ? 1 : 4;
        long first = together * slice.first(count / together);
        return new Rows(first, together * slice.end(count / together) - first);
    }

    private static Column key(Operators operators, Rows rows, long divisor) {
        return operators.stage(() -> operators.calculate(
                operators.calculate(operators.positions(rows.count), Calculation.PLUS, rows.first),
                Calculation.DIVIDED_BY,
                divisor));
    }

    private static Column drawn(Operators operators, Rows rows, List<Draw> draws, double scale, long seed) {
        return operators.stage(() -> {
            Column sum = null;
            for (Draw each : draws) {
                sum = operators.draw(
                        rows.first,
                        rows.count,
                        each.divisor,
                        each.salt + seed,
                        range(each.range, scale),
                        each.base,
                        sum);
            }
            return Objects.requireNonNull(sum);
        });
    }

    private static long range(long range, double scale) {
        return range > 0 ? range : scaled(-range, scale);
    }

    private static long scaled(long rows, double scale) {
        return Math.max(1, Math.round(rows * scale));
    }

    private static long rowCount(String table, double scale) {
        return switch (table) {
            case "lineitem" -> 4 * scaled(1_500_000, scale);
            case "orders" -> scaled(1_500_000, scale);
            case "customer" -> scaled(150_000, scale);
            case "supplier" -> scaled(10_000, scale);
            case "part" -> scaled(200_000, scale);
            case "partsupp" -> 4 * scaled(200_000, scale);
            default -> throw new IllegalArgumentException("no table " + table);
        };
    }

    /// Returns the column of numbers with a name, such as `l_orderkey`.
    Column numbers(String name) {
        return Objects.requireNonNull(numbers.get(name), name);
    }

    /// Returns the column of texts with a name, such as `p_name`.
    Strings texts(String name) {
        return Objects.requireNonNull(texts.get(name), name);
    }

    /// Returns statements of DuckDB's SQL that create the same tables.
    static List<String> sql(double scale, long seed) {
        List<String> statements = new ArrayList<>();
        statements.add("CREATE MACRO drawn(i, salt, below) AS (((i * 2654435 + salt * 97) % 2147483647)"
                + " * ((i * 2654435 + salt * 97) % 2147483647) + salt) % 2147483629 % below");
        statements.add("CREATE MACRO word(i) AS ("
                + WORDS.stream().map(word -> "'" + word + "'").toList() + ")[i]");
        DEFINITIONS.forEach((table, columns) -> statements.add("CREATE TABLE %s AS SELECT %s FROM range(%d) AS r(i)"
                .formatted(
                        table,
                        columns.entrySet().stream()
                                .map(each -> each.getValue().sql(scale, seed) + " AS " + each.getKey())
                                .collect(Collectors.joining(", ")),
                        rowCount(table, scale))));
        return statements;
    }
}
