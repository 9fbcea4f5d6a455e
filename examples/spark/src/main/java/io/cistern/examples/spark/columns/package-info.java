/// Keeps rows of Spark as columns on a device, in Arrow's layout, and runs kernels over them.
@org.jspecify.annotations.NullMarked
package io.cistern.examples.spark.columns;
