/// A small column engine on a device: operators that allocate their results and temporaries from Cistern,
/// and their kernels.
@org.jspecify.annotations.NullMarked
package io.cistern.examples.spark.engine;
