/// Cistern's own exceptions. Failures of the driver are [io.cistern.cuda.CudaException].
package io.cistern.errors;
