package io.cistern.suites.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;

/// What two GPUs can show, on the simulated ones.
class SimulatedTwoGpuTests extends TwoGpuContract {
    @Override
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().devices(2).build();
    }
}
