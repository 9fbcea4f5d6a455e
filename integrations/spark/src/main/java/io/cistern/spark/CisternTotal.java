package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// An event of Spark's listener bus and event log: A job has ended, after these sums of the application.
///
/// @param total what it tells
public record CisternTotal(ClusterTotal total) implements SparkListenerEvent {}
