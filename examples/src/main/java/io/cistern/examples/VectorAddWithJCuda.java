package io.cistern.examples;

import static jcuda.driver.JCudaDriver.cuLaunchKernel;
import static jcuda.driver.JCudaDriver.cuModuleGetFunction;
import static jcuda.driver.JCudaDriver.cuModuleLoadData;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.jcuda.JCudaContext;
import io.cistern.jcuda.JCudaPointers;
import io.cistern.jcuda.JCudaStreams;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/// Adds the same vectors by a kernel that JCuda loads and launches. Needs a GPU, and JCuda's native libraries on
/// the class path (`org.jcuda:jcuda-natives:12.6.0:linux-x86_64`).
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-jcuda`, and those of JCuda that docs/jcuda.md names.
public final class VectorAddWithJCuda {
    private VectorAddWithJCuda() {}

    /// Prints the last sum.
    public static void main(String[] arguments) throws IOException {
        int count = 1 << 20;
        float[] ones = new float[count];
        java.util.Arrays.fill(ones, 1);
        DeviceMemory memory = DeviceMemory.system();
        if (memory.driver().simulated()) {
            System.err.println("JCuda needs a GPU");
            System.exit(1);
        }
        JCudaDriver.setExceptionsEnabled(true);
        try (JCudaContext _ = JCudaContext.enter(memory, 0);
                CudaStream stream = CudaStream.open(memory, 0);
                DeviceBuffer x = DeviceBuffer.allocate(4L * count, stream);
                DeviceBuffer sum = DeviceBuffer.allocate(4L * count, stream)) {
            x.copyFrom(MemorySegment.ofArray(ones));
            CUmodule module = new CUmodule();
            cuModuleLoadData(module, Resources.text("vector_add.ptx"));
            CUfunction add = new CUfunction();
            cuModuleGetFunction(add, module, "vector_add");
            Pointer values = Pointer.to(
                    Pointer.to(JCudaPointers.of(x)),
                    Pointer.to(JCudaPointers.of(x)),
                    Pointer.to(JCudaPointers.of(sum)),
                    Pointer.to(new int[] {count}));
            cuLaunchKernel(add, count / 256, 1, 1, 256, 1, 1, 0, JCudaStreams.of(stream), values, null);
            float[] sums = sum.elements(ValueLayout.JAVA_FLOAT).toFloats();
            System.out.println("1 + 1 = " + sums[count - 1] + ", " + count + " times");
        }
    }
}
