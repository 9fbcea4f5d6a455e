/// Gives device memory to the executors and tasks of Apache Spark.
@org.jspecify.annotations.NullMarked
package io.cistern.spark;
