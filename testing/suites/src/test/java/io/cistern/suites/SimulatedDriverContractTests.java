package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.driver.DriverContract;

class SimulatedDriverContractTests extends DriverContract {
    @Override
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().devices(2).capacityBytes(4L << 30).build();
    }
}
