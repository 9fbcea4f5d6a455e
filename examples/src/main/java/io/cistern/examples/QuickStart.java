package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Allocates device memory from the current allocator, fills it, reads it back, and changes the allocator while
/// a block is live.
///
/// Runs on the GPU, or on the simulated one if there is no GPU. Try it with `-Dcistern.allocator=async`.
public final class QuickStart {
    private static final int DEVICE = 0;

    private QuickStart() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        CudaDriver driver = DeviceMemory.system().driver();
        long stream = driver.streams().create(DEVICE);
        Allocator first = Allocators.current();
        try (DeviceBuffer buffer = DeviceBuffer.allocate(1 << 20, DEVICE, stream)) {
            driver.copies().fillBytes(DEVICE, buffer.address(), (byte) 42, buffer.byteSize(), stream);
            long right = count(driver, buffer, (byte) 42);
            System.out.printf("%s gave %d bytes; %d of them read 42%n", first.name(), buffer.byteSize(), right);

            Allocators.setCurrent("direct"); // later allocations come from another allocator …
        } // … and this one still goes back to the first

        System.out.printf(
                "%s has %d bytes in use, %d at its peak; current is %s%n",
                first.name(),
                first.statistics(DEVICE).requestedBytes(),
                first.statistics(DEVICE).requestedPeakBytes(),
                Allocators.current().name());
        Allocators.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
    }

    private static long count(CudaDriver driver, DeviceBuffer buffer, byte expected) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(buffer.byteSize());
            driver.copies().toHost(DEVICE, host, buffer.address(), buffer.byteSize(), buffer.stream());
            driver.streams().synchronize(DEVICE, buffer.stream());
            return host.elements(ValueLayout.JAVA_BYTE)
                    .filter(element -> element.get(ValueLayout.JAVA_BYTE, 0) == expected)
                    .count();
        }
    }
}
