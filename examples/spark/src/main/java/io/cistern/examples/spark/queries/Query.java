package io.cistern.examples.spark.queries;

import io.cistern.examples.spark.engine.Operators;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The ten queries: each in SQL and as a plan of operators. Their numbers are those of the queries of TPC-H
/// whose shape they have.
public enum Query {
    /// Scan, few groups, five sums.
    Q1(Plans::pricingSummary, """
            SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
                   sum(l_extendedprice * (100 - l_discount)),
                   sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)), count(*)
            FROM lineitem WHERE l_shipdate <= 2300
            GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"""),
    /// Three tables, many groups, the first ten.
    Q3(Plans::shippingPriority, """
            SELECT l_orderkey, sum(l_extendedprice * (100 - l_discount)) AS revenue, o_orderdate
            FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
            WHERE c_mktsegment = 1 AND o_orderdate < 1168 AND l_shipdate > 1168
            GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10"""),
    /// Two tables: orders for which there is a line; few groups.
    Q4(Plans::orderPriority, """
            SELECT o_orderpriority, count(*) FROM orders
            WHERE o_orderdate BETWEEN 600 AND 691
              AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
            GROUP BY o_orderpriority ORDER BY o_orderpriority"""),
    /// Four tables, few groups.
    Q5(Plans::localSupplierVolume, """
            SELECT s_nationkey, sum(l_extendedprice * (100 - l_discount)) AS revenue
            FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
                 JOIN supplier ON l_suppkey = s_suppkey
            WHERE c_nationkey = s_nationkey AND s_nationkey BETWEEN 5 AND 9 AND o_orderdate BETWEEN 730 AND 1094
            GROUP BY s_nationkey ORDER BY revenue DESC, s_nationkey"""),
    /// Scan and sum.
    Q6(Plans::forecastRevenue, """
            SELECT sum(l_extendedprice * l_discount) FROM lineitem
            WHERE l_shipdate BETWEEN 730 AND 1094 AND l_discount BETWEEN 5 AND 7 AND l_quantity < 24"""),
    /// Texts, four tables, some groups.
    Q9(Plans::productProfit, """
            SELECT s_nationkey, o_orderdate // 365 AS year, sum(l_extendedprice * (100 - l_discount))
            FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
                 JOIN orders ON o_orderkey = l_orderkey
            WHERE p_name LIKE '%green%' GROUP BY s_nationkey, year ORDER BY s_nationkey, year DESC"""),
    /// Three tables, many groups, the first twenty.
    Q10(Plans::returnedItems, """
            SELECT c_custkey, sum(l_extendedprice * (100 - l_discount)) AS revenue, c_acctbal
            FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
            WHERE o_orderdate BETWEEN 640 AND 730 AND l_returnflag = 2
            GROUP BY c_custkey, c_acctbal ORDER BY revenue DESC, c_custkey LIMIT 20"""),
    /// Texts, many groups, groups of these, an outer join.
    Q13(Plans::customerDistribution, """
            SELECT c_count, count(*) AS customers
            FROM (SELECT c_custkey, count(o_orderkey) AS c_count
                  FROM customer LEFT JOIN orders
                       ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
                  GROUP BY c_custkey)
            GROUP BY c_count ORDER BY customers DESC, c_count DESC"""),
    /// Texts, distinct values.
    Q16(Plans::supplierVariety, """
            SELECT p_brand, p_type, count(DISTINCT ps_suppkey) AS suppliers
            FROM partsupp JOIN part ON p_partkey = ps_partkey
            WHERE p_brand <> 7 AND p_type NOT LIKE 'almond%' AND p_size BETWEEN 10 AND 17
            GROUP BY p_brand, p_type ORDER BY suppliers DESC, p_brand, p_type LIMIT 40"""),
    /// A group for each order, joins, the first hundred.
    Q18(Plans::largeOrders, """
            SELECT c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
            FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
            WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 180)
            GROUP BY c_custkey, o_orderkey, o_orderdate, o_totalprice
            ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""");

    @SuppressWarnings("ImmutableEnumChecker") // a method, without state
    private final Function<Plans, Stream<Object[]>> plan;

    private final String sql;

    Query(Function<Plans, Stream<Object[]>> plan, String sql) {
        this.plan = plan;
        this.sql = sql;
    }

    String sql() {
        return sql;
    }

    Function<Plans, Stream<Object[]>> plan() {
        return plan;
    }

    /// Runs the query.
    ///
    /// @return the rows in order, the values of each separated by `|`
    List<String> run(Operators operators, Tables tables) {
        return rows(plan, operators, tables)
                .map(row -> Arrays.stream(row).map(Object::toString).collect(Collectors.joining("|")))
                .toList();
    }

    /// Runs a plan.
    static Stream<Object[]> rows(Function<Plans, Stream<Object[]>> plan, Operators operators, Tables tables) {
        return operators.stage(() -> plan.apply(new Plans(operators, tables)), _ -> List.of());
    }
}
