/// Shows device memory on the time line of NVIDIA's profilers, through NVTX.
package io.cistern.observability.nvtx;
