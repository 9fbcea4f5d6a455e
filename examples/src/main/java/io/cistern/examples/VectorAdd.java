package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Adds two vectors on the GPU: memory, copies and a kernel, without another library.
public final class VectorAdd {
    private VectorAdd() {}

    /// Prints the last sum.
    public static void main(String[] arguments) throws IOException {
        int count = 1 << 20;
        float[] ones = new float[count];
        java.util.Arrays.fill(ones, 1);
        DeviceMemory memory = DeviceMemory.system();
        try (CudaStream stream = CudaStream.open(memory, 0);
                CudaModule module = CudaModule.load(memory, 0, Resources.text("vector_add.ptx"));
                DeviceBuffer x = DeviceBuffer.allocate(4L * count, stream);
                DeviceBuffer sum = DeviceBuffer.allocate(4L * count, stream)) {
            x.copyFrom(MemorySegment.ofArray(ones));
            module.function("vector_add").launch(count / 256, 256, stream, x, x, sum, count);
            float[] sums = sum.elements(ValueLayout.JAVA_FLOAT).toFloats();
            System.out.println("1 + 1 = " + sums[count - 1] + ", " + count + " times");
        }
    }
}
