package io.cistern.spark;

import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.examples.spark.columns.DeviceColumns;
import io.cistern.examples.spark.columns.GpuColumns;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// Rows of every type come back from the device as they were.
final class ColumnTypesTests {
    /// The rows of each batch that came, and its bytes.
    private static final Queue<long[]> BATCHES = new ConcurrentLinkedQueue<>();

    private static LocalSpark spark;

    @BeforeAll
    static void start() {
        spark = new LocalSpark();
    }

    @AfterAll
    static void stop() {
        spark.close();
    }

    private static Dataset<Row> there(Dataset<Row> rows, int batchRows) {
        BATCHES.clear();
        return GpuColumns.map(rows, rows.schema(), (batches, _) -> noted(batches), batchRows);
    }

    private static Iterator<DeviceColumns> noted(Iterator<DeviceColumns> batches) {
        List<DeviceColumns> all = new ArrayList<>();
        batches.forEachRemaining(batch -> {
            BATCHES.add(new long[] {batch.rowCount(), batch.byteSize()});
            all.add(batch);
        });
        return all.iterator();
    }

    @Test
    void valuesAndNullsOfAllTypesComeBack() {
        Dataset<Row> rows = spark.session()
                .range(0, 1000, 1, 2)
                .selectExpr(
                        "id",
                        "cast(id as int) as i",
                        "cast(id % 100 as smallint) as s",
                        "cast(id % 100 as tinyint) as b",
                        "id / 3.0D as d",
                        "cast(id / 7.0D as float) as f",
                        "date_add(date'2026-01-01', cast(id as int)) as day",
                        "timestamp_micros(id * 1000003) as at",
                        "id % 3 = 0 as third",
                        "if(id % 5 = 0, null, id % 2 = 0) as sometimes",
                        "repeat('ä', cast(id % 20 as int)) as word",
                        "if(id % 4 = 0, null, concat('w', id)) as maybe",
                        "cast(concat('x', id) as binary) as bytes");
        // Spark makes dates and timestamps of Java by an access that Java refuses without an option.
        assertThat(comparable(there(rows, 64))).isEqualTo(comparable(rows));
    }

    private static List<Row> comparable(Dataset<Row> rows) {
        return rows.withColumns(Map.of("day", expr("unix_date(day)"), "at", expr("unix_micros(at)")))
                .collectAsList();
    }

    @Test
    void aTextLargerThanABatchHasRoom() {
        Dataset<Row> rows = spark.session()
                .range(0, 12, 1, 1)
                .selectExpr("if(id = 5, repeat('long', 25000), concat('short', id)) as text");
        assertThat(there(rows, 4).collectAsList()).isEqualTo(rows.collectAsList());
        assertThat(BATCHES).anySatisfy(batch -> assertThat(batch[1]).isGreaterThan(100_000));
    }

    @Test
    void batchesOfLongTextsHaveFewerRows() {
        Dataset<Row> rows =
                spark.session().range(0, 2000, 1, 1).selectExpr("id", "concat(repeat('t', 300), id) as text");
        assertThat(there(rows, 1000).collectAsList()).isEqualTo(rows.collectAsList());
        assertThat(BATCHES)
                .hasSizeGreaterThan(10)
                .allSatisfy(batch -> assertThat(batch[0]).isBetween(1L, 110L));
    }

    @Test
    void aColumnOfListsIsRefused() {
        Dataset<Row> lists = spark.session().sql("select array(1, 2) as many");
        StructType schema = new StructType().add("many", DataTypes.LongType);
        assertThatThrownBy(() -> GpuColumns.map(lists, schema, (batches, _) -> batches))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("column 'many' is of type array<int>")
                .hasMessageContaining("valid: boolean, tinyint, smallint, int, date, bigint, timestamp, float, double,"
                        + " string, binary");
    }
}
