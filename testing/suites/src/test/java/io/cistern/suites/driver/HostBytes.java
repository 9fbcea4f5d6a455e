package io.cistern.suites.driver;

import io.cistern.cuda.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.random.RandomGenerator;

/// Pinned host memory with the few operations that tests need.
record HostBytes(CudaDriver driver, int device, MemorySegment segment) implements AutoCloseable {
    static HostBytes pinned(CudaDriver driver, int device, long byteSize) {
        MemorySegment segment = driver.memory().allocateHost(device, byteSize);
        segment.fill((byte) 0);
        return new HostBytes(driver, device, segment);
    }

    HostBytes withRandomContents(RandomGenerator random) {
        for (long i = 0; i < segment.byteSize(); i++) {
            segment.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
        return this;
    }

    /// Copies from the device and waits for it.
    HostBytes readFrom(long address, long stream) {
        driver.copies().toHost(device, segment, address, segment.byteSize(), stream);
        driver.streams().synchronize(device, stream);
        return this;
    }

    byte[] bytes() {
        return segment.toArray(ValueLayout.JAVA_BYTE);
    }

    int[] words() {
        return segment.toArray(ValueLayout.JAVA_INT);
    }

    boolean holdsOnly(int value) {
        return Arrays.equals(bytes(), filled(segment.byteSize(), value));
    }

    static byte[] filled(long byteSize, int value) {
        byte[] bytes = new byte[Math.toIntExact(byteSize)];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    static int[] filledWords(long count, int value) {
        int[] words = new int[Math.toIntExact(count)];
        Arrays.fill(words, value);
        return words;
    }

    @Override
    public void close() {
        driver.memory().freeHost(device, segment);
    }
}
