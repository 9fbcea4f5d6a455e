package io.cistern.spark.barrier;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/// Creates stages whose tasks all run at once, each with its [rank][BarrierRanks]. Scala has `rdd.barrier()`
/// for this; Java's RDDs lack it.
public final class BarrierStage {
    private BarrierStage() {}

    /// The work of each task.
    ///
    /// @param <T> the type of the partition's rows
    /// @param <R> the type of the results
    @FunctionalInterface
    public interface RankFunction<T, R> extends Serializable {
        /// Does the work of one task.
        ///
        /// @param rows the partition's rows
        /// @param ranks this task's rank among the others
        /// @return the results
        /// @throws Exception if the work fails; the stage fails then
        Iterator<R> apply(Iterator<T> rows, BarrierRanks ranks) throws Exception;
    }

    /// Maps all partitions at once. The cluster must have a free slot for each of them.
    ///
    /// @param <T> the type of the partitions' rows
    /// @param <R> the type of the results
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
