package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// An event of Spark's listener bus and event log: An executor is gone, with these figures.
///
/// @param last what it tells
public record CisternExecutor(ExecutorFigures last) implements SparkListenerEvent {}
