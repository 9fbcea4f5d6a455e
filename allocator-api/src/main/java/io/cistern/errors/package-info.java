/// The exceptions of Cistern's own. Failures of the driver are [io.cistern.cuda.CudaException].
package io.cistern.errors;
