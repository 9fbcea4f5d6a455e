package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports on Spark's listener bus and in its event log that an executor, or the application, has
/// ended, with the executor's last figures.
///
/// @param last the executor's last figures
public record CisternExecutor(ExecutorFigures last) implements SparkListenerEvent {}
