package io.cistern.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/// Reports on Spark's listener bus and in its event log that a task leaked device memory, which was
/// freed for it.
///
/// @param leak the leaked memory
public record CisternLeak(LeakReport leak) implements SparkListenerEvent {}
