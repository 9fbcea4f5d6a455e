package io.cistern.cli;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.buffers.BufferContract;

/// Buffers, arenas, copies and launches on the simulated GPU: this module has all allocators on its class path.
final class BuffersTests extends BufferContract {
    @Override
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().devices(2).capacityBytes(4L << 30).build();
    }
}
