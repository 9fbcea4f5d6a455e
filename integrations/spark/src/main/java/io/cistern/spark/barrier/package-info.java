/// Runs collectives between the tasks of a barrier stage.
@org.jspecify.annotations.NullMarked
package io.cistern.spark.barrier;
