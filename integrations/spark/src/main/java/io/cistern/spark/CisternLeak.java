package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// An event of Spark's listener bus and event log: A task left device memory that was freed for it.
///
/// @param leak what it tells
public record CisternLeak(LeakReport leak) implements SparkListenerEvent {}
