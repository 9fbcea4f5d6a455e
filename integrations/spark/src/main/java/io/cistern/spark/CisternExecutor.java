package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports in Spark's listener bus and event log that an executor, or the application, has ended, with the executor's
/// last figures.
///
/// @param last the executor's last figures
public record CisternExecutor(ExecutorFigures last) implements SparkListenerEvent {}
