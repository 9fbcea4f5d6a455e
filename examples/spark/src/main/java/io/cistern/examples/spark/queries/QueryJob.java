package io.cistern.examples.spark.queries;

import io.cistern.examples.spark.engine.Operators;
import io.cistern.spark.TaskMemory;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;

/// Runs the queries as Spark jobs. A job has a task for each slice of the large [tables][Tables]. The task
/// draws its slice, and the small tables whole as in a broadcast join, on its executor's device, runs the query's
/// plan there, and returns the rows. Spark SQL merges the rows of all tasks:
///
/// - Q1, Q4, Q5, Q6, Q9: adds up the sums and counts of each group.
/// - Q3, Q18: takes the first rows. A group is an order, whose lines are all in one slice.
/// - Q10: adds up the sums of each customer. Tasks return all customers, not the first twenty.
/// - Q13: adds up the orders of each customer, then counts customers. Tasks return all customers.
/// - Q16: counts distinct suppliers. Tasks return pairs of a kind and a supplier.
///
/// A task that gets no memory waits or runs again. If a slice needs more than the device has, the task splits it:
/// rows of its halves merge like those of slices.
public final class QueryJob {
    /// How to merge the rows of slices.
    ///
    /// @param plan what a task runs
    /// @param columns the columns of its rows
    private record Merge(Function<Plans, Stream<Object[]>> plan, String columns, String sql) {}

    private QueryJob() {}

    /// Returns a query's rows in order, the values of each separated by `|`. Replaces the session's view `slices`, so
    /// a session runs one query at a time.
    ///
    /// @param scale 1 for six million lines
    /// @param tasks number of slices
    public static List<String> run(SparkSession session, Query query, double scale, int tasks) {
        Merge merge = merge(query);
        FlatMapFunction<Long, Row> task = number -> rows(query, scale, new Slice(number, tasks));
        session.range(0, tasks, 1, tasks)
                .flatMap(task, Encoders.row(StructType.fromDDL(merge.columns)))
                .createOrReplaceTempView("slices");
        return session.sql(merge.sql).collectAsList().stream()
                .map(row -> row.mkString("|"))
                .toList();
    }

    /// Runs the plan of a slice in a task.
    private static Iterator<Row> rows(Query query, double scale, Slice whole) {
        TaskMemory memory = TaskMemory.current();
        return memory
                .<Slice, Stream<Object[]>, RuntimeException>retry(whole, Slice::halves, slice -> {
                    try (Operators operators = new Operators(memory.stream(), memory.device(), null)) {
                        Tables tables = new Tables(operators, scale, Expected.SEED, slice);
                        return Query.rows(merge(query).plan, operators, tables);
                    }
                })
                .stream()
                .flatMap(rows -> rows.map(RowFactory::create))
                .iterator();
    }

    private static Merge merge(Query query) {
        return switch (query) {
            case Q1 ->
                new Merge(
                        query.plan(),
                        "flag LONG, status LONG, quantity LONG, price LONG, reduced LONG, taxed LONG, lines LONG",
                        """
                        SELECT flag, status, sum(quantity), sum(price), sum(reduced), sum(taxed), sum(lines)
                        FROM slices GROUP BY flag, status ORDER BY flag, status""");
            case Q3 ->
                new Merge(
                        query.plan(),
                        "order LONG, revenue LONG, date LONG",
                        "SELECT * FROM slices ORDER BY revenue DESC, date, order LIMIT 10");
            case Q4 ->
                new Merge(
                        query.plan(),
                        "priority LONG, orders LONG",
                        "SELECT priority, sum(orders) FROM slices GROUP BY priority ORDER BY priority");
            case Q5 -> new Merge(query.plan(), "nation LONG, revenue LONG", """
                        SELECT nation, sum(revenue) AS total FROM slices
                        GROUP BY nation ORDER BY total DESC, nation""");
            case Q6 -> new Merge(query.plan(), "revenue LONG", "SELECT sum(revenue) FROM slices");
            case Q9 -> new Merge(query.plan(), "nation LONG, year LONG, profit LONG", """
                        SELECT nation, year, sum(profit) FROM slices
                        GROUP BY nation, year ORDER BY nation, year DESC""");
            case Q10 -> new Merge(Plans::allReturnedItems, "customer LONG, revenue LONG, balance LONG", """
                        SELECT customer, sum(revenue) AS total, balance FROM slices
                        GROUP BY customer, balance ORDER BY total DESC, customer LIMIT 20""");
            case Q13 -> new Merge(Plans::ordersOfCustomers, "customer LONG, orders LONG", """
                        SELECT total, count(*) AS customers
                        FROM (SELECT sum(orders) AS total FROM slices GROUP BY customer)
                        GROUP BY total ORDER BY customers DESC, total DESC""");
            case Q16 -> new Merge(Plans::suppliersOfKinds, "brand LONG, type STRING, supplier LONG", """
                        SELECT brand, type, count(DISTINCT supplier) AS suppliers FROM slices
                        GROUP BY brand, type ORDER BY suppliers DESC, brand, type LIMIT 40""");
            case Q18 ->
                new Merge(
                        query.plan(),
                        "customer LONG, order LONG, date LONG, price LONG, quantity LONG",
                        "SELECT * FROM slices ORDER BY price DESC, date, order LIMIT 100");
        };
    }
}
