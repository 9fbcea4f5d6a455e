package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports on Spark's listener bus and in its event log that a job has ended, with the application's
/// sums so far.
///
/// @param total the application's sums
public record CisternTotal(ClusterTotal total) implements SparkListenerEvent {}
