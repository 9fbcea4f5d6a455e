package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import java.lang.foreign.ValueLayout;

/// Copies a buffer from one GPU to another, in order with the work on both streams, without a wait on the host.
public final class TwoGpus {
    private TwoGpus() {}

    /// Prints the bytes that arrived.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        if (memory.environment().deviceCount() < 2) {
            System.err.println("only one GPU; to simulate a second one: -Dcistern.simulated.devices=2");
            System.exit(1);
        }
        try (CudaStream here = CudaStream.open(memory, 0);
                CudaStream there = CudaStream.open(memory, 1);
                DeviceBuffer source = DeviceBuffer.allocate(1 << 20, here);
                DeviceBuffer target = DeviceBuffer.allocate(1 << 20, there)) {
            source.fill((byte) 42);
            target.copyFrom(source);
            source.fill((byte) 0); // after the copy has read it
            byte[] arrived = target.elements(ValueLayout.JAVA_BYTE).toBytes();
            System.out.println(arrived.length + " bytes on device 1, the last is " + arrived[arrived.length - 1]);
        }
    }
}
