/// Ten queries of the shapes of TPC-H over columns on a device, and a program that measures them with
/// several allocators.
@org.jspecify.annotations.NullMarked
package io.cistern.examples.spark.queries;
