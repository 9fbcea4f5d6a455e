package io.cistern.spark.barrier;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/// Makes a stage whose tasks all run at once, each with its [rank][BarrierRanks]: in Scala `rdd.barrier()` does, which
/// Java's RDDs lack.
public final class BarrierStage {
    private BarrierStage() {}

    /// What each task does.
    ///
    /// @param <T> what its partition has
    /// @param <R> what it returns
    @FunctionalInterface
    public interface RankFunction<T, R> extends Serializable {
        /// Does it.
        ///
        /// @param rows the partition
        /// @param ranks this task's rank among the others
        /// @throws Exception as it likes; the stage fails then
        Iterator<R> apply(Iterator<T> rows, BarrierRanks ranks) throws Exception;
    }

    /// Maps all partitions at once. There must be an executor's slot for each.
    ///
    /// @param <T> what partitions have
    /// @param <R> what tasks return
    public static <T, R> JavaRDD<R> mapPartitions(JavaRDD<T> rdd, RankFunction<T, R> function) {
        ClassTag<R> anything = ClassTag$.MODULE$.apply(Object.class);
        RDD<R> mapped = rdd.rdd().barrier().mapPartitions(scala(function), false, anything);
        return mapped.toJavaRDD();
    }

    private static <T, R> Function1<scala.collection.Iterator<T>, scala.collection.Iterator<R>> scala(
            RankFunction<T, R> function) {
        return (Function1<scala.collection.Iterator<T>, scala.collection.Iterator<R>> & Serializable)
                rows -> CollectionConverters.asScala(applied(function, CollectionConverters.asJava(rows)));
    }

    private static <T, R> Iterator<R> applied(RankFunction<T, R> function, Iterator<T> rows) {
        try {
            return function.apply(rows, BarrierRanks.join());
        } catch (RuntimeException failure) {
            throw failure;
        } catch (Exception failure) {
            throw new IllegalStateException("a task of the barrier stage failed", failure);
        }
    }
}
