package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports in Spark's listener bus and event log that a task leaked device memory, which was freed for it.
///
/// @param leak the leaked memory
public record CisternLeak(LeakReport leak) implements SparkListenerEvent {}
