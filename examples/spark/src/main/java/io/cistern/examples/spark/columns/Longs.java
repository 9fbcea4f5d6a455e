package io.cistern.examples.spark.columns;

import io.cistern.simulated.KernelLaunch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/// Holds 64-bit words that a simulated kernel reads or writes.
final class Longs {
    private final ByteBuffer bytes;

    private Longs(byte[] bytes) {
        this.bytes = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static Longs ofSize(int count) {
        return new Longs(new byte[count * Long.BYTES]);
    }

    /// @param argument the index of the kernel argument that has the address
    static Longs read(KernelLaunch launch, int argument, int first, int count) {
        long address = launch.longAt(argument) + (long) first * Long.BYTES;
        return new Longs(launch.memory().read(address, count * Long.BYTES));
    }

    void write(KernelLaunch launch, int argument, int count) {
        launch.memory().write(launch.longAt(argument), Arrays.copyOf(bytes.array(), count * Long.BYTES));
    }

    int size() {
        return bytes.capacity() / Long.BYTES;
    }

    long get(int index) {
        return bytes.getLong(index * Long.BYTES);
    }

    void set(int index, long value) {
        bytes.putLong(index * Long.BYTES, value);
    }

    void swap(int one, int other) {
        long value = get(one);
        set(one, get(other));
        set(other, value);
    }
}
