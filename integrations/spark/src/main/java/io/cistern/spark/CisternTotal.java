package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports in Spark's listener bus and event log that a job has ended, with the application's sums so far.
///
/// @param total the application's sums
public record CisternTotal(ClusterTotal total) implements SparkListenerEvent {}
