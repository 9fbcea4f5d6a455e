package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.spi.SleepMode;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// Removes a model from the GPU while it has no requests: its weights go to the host, its cache is dropped,
/// its addresses stay.
public final class SleepingModel {
    private static final int DEVICE = 0;
    private static final int MIB = 1 << 20;

    private SleepingModel() {}

    /// Prints the model's GPU memory before, during and after the sleep.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                MemoryPool weights = MemoryPool.builder(memory).tag("weights").open();
                MemoryPool cache = MemoryPool.builder(memory).tag("cache").open();
                DeviceBuffer layer = buffer(weights, 64 * MIB, stream);
                DeviceBuffer keys = buffer(cache, 32 * MIB, stream)) {
            layer.fill((byte) 7);
            long before = layer.address();
            print("awake", weights, cache);

            memory.pools().sleep("weights", SleepMode.KEEP);
            memory.pools().sleep("cache", SleepMode.DROP);
            print("asleep", weights, cache);
            try {
                layer.fill((byte) 0);
            } catch (MemoryAsleepException asleep) {
                System.out.println(
                        "not used: " + String.valueOf(asleep.getMessage()).replaceAll(".*: ", ""));
            }

            memory.pools().wake("weights");
            memory.pools().wake("cache");
            print("awake again", weights, cache);
            keys.fill((byte) 0);
            byte[] bytes = new byte[64 * MIB];
            layer.copyTo(MemorySegment.ofArray(bytes));
            byte[] expected = new byte[bytes.length];
            Arrays.fill(expected, (byte) 7);
            System.out.println(
                    "same address: " + (layer.address() == before) + ", same bytes: " + Arrays.equals(bytes, expected));
        }
    }

    private static DeviceBuffer buffer(MemoryPool pool, long byteSize, CudaStream stream) {
        try (Scope _ = pool.enter()) {
            return DeviceBuffer.allocate(byteSize, stream);
        }
    }

    private static void print(String when, MemoryPool weights, MemoryPool cache) {
        System.out.println(when + ": " + mebibytes(weights) + " MiB of weights, " + mebibytes(cache) + " MiB of cache");
    }

    private static long mebibytes(MemoryPool pool) {
        return pool.reservedBytes(DEVICE).orElseThrow() / MIB;
    }
}
