package io.cistern.suites.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;

/// What one GPU can show, on the simulated one.
class SimulatedOneGpuTests extends OneGpuContract {
    @Override
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().build();
    }
}
