package io.cistern.examples.spark.queries;

import static io.cistern.examples.spark.engine.Operators.Calculation.DIVIDED_BY;
import static io.cistern.examples.spark.engine.Operators.Calculation.FROM;
import static io.cistern.examples.spark.engine.Operators.Calculation.PLUS;
import static io.cistern.examples.spark.engine.Operators.Calculation.TIMES;

import io.cistern.examples.spark.engine.Column;
import io.cistern.examples.spark.engine.Groups;
import io.cistern.examples.spark.engine.Operators;
import io.cistern.examples.spark.engine.Operators.Dictionary;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The plans of the queries. A row of a table is a number, and what a plan knows of some rows is a column
/// of these.
final class Plans {
    private static final long NATIONS = 25;
    private static final long BRANDS = 25;
    private static final long TYPES = 64;
    private static final long YEARS = 7;

    private final Operators operators;
    private final Tables tables;

    /// The rows of two tables, side by side.
    private record Joined(Column rows, Column others) {}

    Plans(Operators operators, Tables tables) {
        this.operators = operators;
        this.tables = tables;
    }

    Stream<Object[]> pricingSummary() {
        Column rows = where("l_shipdate", 0, 2_300);
        Groups groups = groupedBy(() -> combined(of("l_returnflag", rows), 2, of("l_linestatus", rows)), 6);
        Column first = operators.gather(rows, groups.rows());
        Column flag = of("l_returnflag", first);
        Column status = of("l_linestatus", first);
        Column reduced = operators.stage(() -> revenue(rows));
        Column taxed = operators.stage(
                () -> operators.calculate(reduced, TIMES, operators.calculate(of("l_tax", rows), PLUS, 100)));
        return rows(
                operators.order(flag, status),
                flag,
                status,
                operators.stage(() -> operators.sums(groups, of("l_quantity", rows))),
                operators.stage(() -> operators.sums(groups, of("l_extendedprice", rows))),
                operators.sums(groups, reduced),
                operators.sums(groups, taxed),
                operators.sums(groups, null));
    }

    Stream<Object[]> shippingPriority() {
        Column customers = where("c_mktsegment", 1, 1);
        Column orders = join("o_custkey", where("o_orderdate", 0, 1_167), "c_custkey", customers).rows;
        Joined joined = join("l_orderkey", where("l_shipdate", 1_169, Long.MAX_VALUE), "o_orderkey", orders);
        Column lines = joined.rows;
        Groups groups = groupedBy(() -> of("l_orderkey", lines), lines.count());
        Column revenue = operators.stage(() -> operators.sums(groups, revenue(lines)));
        Column order = operators.gather(joined.others, groups.rows());
        Column date = of("o_orderdate", order);
        Column key = of("o_orderkey", order);
        return rows(first(10, negated(revenue), date, key), key, revenue, date);
    }

    Stream<Object[]> orderPriority() {
        Column late = operators.stage(() ->
                operators.select(operators.less(tables.numbers("l_commitdate"), tables.numbers("l_receiptdate"))));
        Column lateOrders = operators.stage(() -> {
            Column keys = of("l_orderkey", late);
            return operators.gather(keys, operators.group(keys, keys.count()).rows());
        });
        Column orders = where("o_orderdate", 600, 691);
        Column found = operators.stage(() ->
                operators.gather(orders, matched(operators.match(of("o_orderkey", orders), lateOrders))));
        Column priority = of("o_orderpriority", found);
        Groups groups = operators.group(priority, 5);
        Column key = operators.gather(priority, groups.rows());
        return rows(operators.order(key), key, operators.sums(groups, null));
    }

    Stream<Object[]> localSupplierVolume() {
        Joined ordersOfCustomers = join("o_custkey", where("o_orderdate", 730, 1_094), "c_custkey", null);
        Joined linesOfOrders = join("l_orderkey", null, "o_orderkey", ordersOfCustomers.rows);
        Column lines = linesOfOrders.rows;
        Column customer = operators.stage(() -> {
            // Each order is one row of those joined, so its place there leads to its customer.
            Column place = operators.match(linesOfOrders.others, ordersOfCustomers.rows);
            return operators.gather(ordersOfCustomers.others, place);
        });
        Column supplier = operators.stage(() -> operators.match(of("l_suppkey", lines), tables.numbers("s_suppkey")));
        Column nation = of("s_nationkey", supplier);
        Column local = operators.stage(() -> {
            Column difference = operators.calculate(nation, FROM, of("c_nationkey", customer));
            return operators.select(operators.between(nation, 5, 9, true, operators.between(difference, 0, 0)));
        });
        Column nations = operators.gather(nation, local);
        Groups groups = operators.group(nations, NATIONS);
        Column key = operators.gather(nations, groups.rows());
        Column revenue = operators.stage(() -> operators.sums(groups, revenue(operators.gather(lines, local))));
        return rows(operators.order(negated(revenue), key), key, revenue);
    }

    Stream<Object[]> forecastRevenue() {
        Column rows = operators.stage(() -> operators.select(operators.between(
                tables.numbers("l_quantity"),
                0,
                23,
                true,
                operators.between(
                        tables.numbers("l_discount"),
                        5,
                        7,
                        true,
                        operators.between(tables.numbers("l_shipdate"), 730, 1_094)))));
        Column sum = operators.stage(
                () -> operators.sum(operators.calculate(of("l_extendedprice", rows), TIMES, of("l_discount", rows))));
        return rows(operators.order(sum), sum);
    }

    Stream<Object[]> productProfit() {
        Column parts =
                operators.stage(() -> operators.select(operators.like(tables.texts("p_name"), "%green%", true, null)));
        Column lines = join("l_partkey", null, "p_partkey", parts).rows;
        Column supplier = operators.stage(() -> operators.match(of("l_suppkey", lines), tables.numbers("s_suppkey")));
        Column order = operators.stage(() -> operators.match(of("l_orderkey", lines), tables.numbers("o_orderkey")));
        Column nation = of("s_nationkey", supplier);
        Column year = operators.stage(() -> operators.calculate(of("o_orderdate", order), DIVIDED_BY, 365));
        Groups groups = groupedBy(() -> combined(nation, YEARS, year), NATIONS * YEARS);
        Column nations = operators.gather(nation, groups.rows());
        Column years = operators.gather(year, groups.rows());
        Column profit = operators.stage(() -> operators.sums(groups, revenue(lines)));
        return rows(operators.order(nations, negated(years)), nations, years, profit);
    }

    Stream<Object[]> returnedItems() {
        return returnedItems(20);
    }

    /// Returns the revenue of each customer with returned items in this slice.
    Stream<Object[]> allReturnedItems() {
        return returnedItems(Long.MAX_VALUE);
    }

    private Stream<Object[]> returnedItems(long most) {
        Joined orders = join("o_custkey", where("o_orderdate", 640, 730), "c_custkey", null);
        Joined joined = join("l_orderkey", where("l_returnflag", 2, 2), "o_orderkey", orders.rows);
        Column lines = joined.rows;
        Column customer = of("o_custkey", joined.others);
        Groups groups = operators.group(customer, customer.count());
        Column key = operators.gather(customer, groups.rows());
        Column balance = operators.stage(() -> of("c_acctbal", operators.match(key, tables.numbers("c_custkey"))));
        Column revenue = operators.stage(() -> operators.sums(groups, revenue(lines)));
        return rows(first(most, negated(revenue), key), key, revenue, balance);
    }

    Stream<Object[]> customerDistribution() {
        Column counts = orderCounts();
        Groups byCount = operators.group(counts, counts.count());
        Column count = operators.gather(counts, byCount.rows());
        Column customers = operators.sums(byCount, null);
        return rows(operators.order(negated(customers), negated(count)), count, customers);
    }

    /// Returns each customer's number of orders in this slice.
    Stream<Object[]> ordersOfCustomers() {
        Column counts = orderCounts();
        return rows(operators.positions(counts.count()), tables.numbers("c_custkey"), counts);
    }

    private Column orderCounts() {
        Column orders = operators.stage(
                () -> operators.select(operators.like(tables.texts("o_comment"), "%special%requests%", false, null)));
        Column customer = of("o_custkey", orders);
        Groups groups = operators.group(customer, customer.count());
        return operators.stage(() -> {
            Column found = operators.match(tables.numbers("c_custkey"), operators.gather(customer, groups.rows()));
            return operators.gather(operators.sums(groups, null), found, 0);
        });
    }

    Stream<Object[]> supplierVariety() {
        Offers offers = offers();
        Groups groups = operators.group(offers.kinds, BRANDS * TYPES);
        Column kind = operators.gather(offers.kinds, groups.rows());
        Column count = operators.sums(groups, null);
        return rows(first(40, negated(count), kind), offers.meanings(), kind, kind, count);
    }

    /// Returns the suppliers of each brand and type in this slice, each once.
    Stream<Object[]> suppliersOfKinds() {
        Offers offers = offers();
        Column all = operators.positions(offers.kinds.count());
        return rows(all, offers.meanings(), offers.kinds, offers.kinds, offers.suppliers);
    }

    /// A kind is a brand and the number of a type. Each pair of a kind and a supplier occurs once.
    private record Offers(Column kinds, Column suppliers, List<String> types) {
        /// Returns what to make of a kind, which is the brand; of a kind, which is the type; and of a number.
        List<LongFunction<Object>> meanings() {
            return List.of(kind -> kind / TYPES, kind -> types.get((int) (kind % TYPES)), Long::valueOf);
        }
    }

    private Offers offers() {
        Column parts = operators.stage(() -> {
            Column size = operators.between(tables.numbers("p_size"), 10, 17);
            Column brand = operators.between(tables.numbers("p_brand"), 7, 7, false, size);
            return operators.select(operators.like(tables.texts("p_type"), "almond%", false, brand));
        });
        Dictionary types = operators.dictionary(tables.texts("p_type"), TYPES);
        Joined joined = join("ps_partkey", null, "p_partkey", parts);
        return operators.stage(
                () -> {
                    Column kind = combined(
                            of("p_brand", joined.others), TYPES, operators.gather(types.numbers(), joined.others));
                    Column supplier = of("ps_suppkey", joined.rows);
                    long suppliers = tables.numbers("s_suppkey").count();
                    Groups pairs = operators.group(combined(kind, suppliers, supplier), kind.count());
                    return new Offers(
                            operators.gather(kind, pairs.rows()),
                            operators.gather(supplier, pairs.rows()),
                            types.texts());
                },
                offers -> List.of(offers.kinds, offers.suppliers));
    }

    Stream<Object[]> largeOrders() {
        Groups byOrder = operators.group(
                tables.numbers("l_orderkey"), tables.numbers("l_orderkey").count());
        Column quantity = operators.sums(byOrder, tables.numbers("l_quantity"));
        Column large = operators.stage(() -> operators.select(operators.between(quantity, 181, Long.MAX_VALUE)));
        Column keys = operators.stage(() -> of("l_orderkey", operators.gather(byOrder.rows(), large)));
        Column quantities = operators.gather(quantity, large);
        Column orders = operators.match(keys, tables.numbers("o_orderkey"));
        Column customer = of("o_custkey", orders);
        Column date = of("o_orderdate", orders);
        Column price = of("o_totalprice", orders);
        return rows(first(100, negated(price), date, keys), customer, keys, date, price, quantities);
    }

    /// Returns a table's rows with a value in a range.
    private Column where(String column, long low, long high) {
        return operators.stage(() -> operators.select(operators.between(tables.numbers(column), low, high)));
    }

    /// Returns some rows' values; null stands for all rows.
    private Column of(String column, @Nullable Column rows) {
        return rows == null ? tables.numbers(column) : operators.gather(tables.numbers(column), rows);
    }

    /// Joins rows of two tables; null stands for all of a table's rows.
    ///
    /// @param uniqueKey a column in which each of the other rows has another value
    private Joined join(String key, @Nullable Column rows, String uniqueKey, @Nullable Column others) {
        return operators.stage(
                () -> {
                    Column found = operators.match(of(key, rows), of(uniqueKey, others));
                    Column matched = matched(found);
                    Column other = operators.gather(found, matched);
                    return new Joined(
                            rows == null ? matched : operators.gather(rows, matched),
                            others == null ? other : operators.gather(others, other));
                },
                joined -> List.of(joined.rows, joined.others));
    }

    private Groups groupedBy(Supplier<Column> key, long most) {
        return operators.stage(() -> operators.group(key.get(), most), Groups::columns);
    }

    /// Returns the first rows in the order of some columns.
    private Column first(long most, Column... keys) {
        return operators.stage(() -> operators.first(operators.order(keys), most));
    }

    private Stream<Object[]> rows(Column order, Column... columns) {
        return rows(
                order,
                Arrays.stream(columns)
                        .<LongFunction<Object>>map(_ -> Long::valueOf)
                        .toList(),
                columns);
    }

    /// Reads columns from the device.
    private Stream<Object[]> rows(Column order, List<LongFunction<Object>> meanings, Column... columns) {
        List<long[]> values = Arrays.stream(columns)
                .map(column -> operators.read(operators.gather(column, order)))
                .toList();
        return IntStream.range(0, (int) order.count())
                .mapToObj(row -> IntStream.range(0, columns.length)
                        .mapToObj(column -> meanings.get(column).apply(values.get(column)[row]))
                        .toArray());
    }

    private Column revenue(Column lines) {
        return operators.calculate(
                of("l_extendedprice", lines), TIMES, operators.calculate(of("l_discount", lines), FROM, 100));
    }

    private Column combined(Column a, long valuesOfB, Column b) {
        return operators.calculate(operators.calculate(a, TIMES, valuesOfB), PLUS, b);
    }

    private Column negated(Column values) {
        return operators.calculate(values, FROM, 0);
    }

    private Column matched(Column found) {
        return operators.select(operators.between(found, 0, Long.MAX_VALUE));
    }
}
