package io.cistern.suites.nccl;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Writes and reads the contents of buffers in stream order.
final class Transfers {
    private Transfers() {}

    static void write(CudaDriver driver, DeviceBuffer buffer, byte[] bytes, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(bytes.length);
            MemorySegment.copy(bytes, 0, host, ValueLayout.JAVA_BYTE, 0, bytes.length);
            driver.copies().toDevice(buffer.device(), buffer.address(), host, bytes.length, stream);
            driver.streams().synchronize(buffer.device(), stream);
        }
    }

    static byte[] read(CudaDriver driver, DeviceBuffer buffer, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(buffer.byteSize());
            driver.copies().toHost(buffer.device(), host, buffer.address(), buffer.byteSize(), stream);
            driver.streams().synchronize(buffer.device(), stream);
            return host.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    static void fill(CudaDriver driver, DeviceBuffer buffer, float value, long stream) {
        driver.copies()
                .fillWords(
                        buffer.device(),
                        buffer.address(),
                        Float.floatToRawIntBits(value),
                        buffer.byteSize() / Float.BYTES,
                        stream);
    }

    /// Counts, on the device, the words of a buffer that differ from a value.
    static long countOther(CudaDriver driver, DeviceBuffer buffer, float value, long stream) {
        int device = buffer.device();
        long counter = driver.memory().allocate(device, Long.BYTES);
        try (MemoryKernels kernels = MemoryKernels.load(driver, device);
                Arena arena = Arena.ofConfined()) {
            driver.copies().fillBytes(device, counter, (byte) 0, Long.BYTES, stream);
            kernels.countMismatches(
                    buffer.address(), buffer.byteSize() / Float.BYTES, Float.floatToRawIntBits(value), counter, stream);
            MemorySegment host = arena.allocate(ValueLayout.JAVA_LONG);
            driver.copies().toHost(device, host, counter, Long.BYTES, stream);
            driver.streams().synchronize(device, stream);
            return host.get(ValueLayout.JAVA_LONG, 0);
        } finally {
            driver.memory().free(device, counter);
        }
    }
}
