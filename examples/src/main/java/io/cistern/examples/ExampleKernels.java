package io.cistern.examples;

import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.simulated.KernelLaunch;
import io.cistern.simulated.Kernels;
import io.cistern.simulated.SimulatedKernel;
import io.cistern.simulated.SimulatedKernels;
import java.util.List;

/// Simulates the examples' kernels in Java, so that the examples run without a GPU.
public final class ExampleKernels implements SimulatedKernels {
    /// Called by [java.util.ServiceLoader].
    public ExampleKernels() {}

    @Override
    public void register(Kernels kernels) {
        kernels.register("vector_add", new VectorAddition());
    }

    private static final class VectorAddition implements SimulatedKernel {
        @Override
        public void run(KernelLaunch launch) {
            float[] x = launch.memory().readFloats(launch.longAt(0), launch.intAt(3));
            float[] y = launch.memory().readFloats(launch.longAt(1), launch.intAt(3));
            for (int i = 0; i < x.length; i++) {
                x[i] += y[i];
            }
            launch.memory().writeFloats(launch.longAt(2), x);
        }

        @Override
        public List<AddressRange> uses(KernelLaunch launch) {
            long byteSize = 4L * launch.intAt(3);
            return List.of(
                    new AddressRange(launch.longAt(0), byteSize),
                    new AddressRange(launch.longAt(1), byteSize),
                    new AddressRange(launch.longAt(2), byteSize));
        }
    }
}
