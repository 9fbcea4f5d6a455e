package io.cistern.examples.spark.columns;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Copies;
import io.cistern.spark.TaskMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// Allocates device memory for one piece of work on the task's stream, and frees it at the end.
final class Scratch implements AutoCloseable {
    private final TaskMemory memory;
    private final KeyedSumKernels kernels;
    private final List<DeviceBuffer> buffers = new ArrayList<>();

    Scratch(TaskMemory memory, KeyedSumKernels kernels) {
        this.memory = memory;
        this.kernels = kernels;
    }

    /// Returns the address of `count` words with undefined bytes.
    long longs(long count) {
        DeviceBuffer buffer = DeviceBuffer.allocate(Math.max(1, count) * Long.BYTES, memory.stream());
        buffers.add(buffer);
        return buffer.address();
    }

    /// Returns the address of `count` words that all have one value.
    long filled(long count, long value) {
        long address = longs(count);
        kernels.launch(KeyedSumKernels.FILL_LONGS, memory, count, address, count, value);
        return address;
    }

    /// Returns the address of a word that is 0.
    long counter() {
        return filled(1, 0);
    }

    /// Waits for the work so far, then reads a word.
    long read(long address) {
        for (DeviceBuffer buffer : buffers) {
            if (buffer.address() == address) {
                return buffer.elements(ValueLayout.JAVA_LONG).getLong(0);
            }
        }
        throw new IllegalArgumentException("no scratch memory begins at " + address);
    }

    void copy(long target, long source, long count) {
        if (count > 0) {
            copies().onDevice(
                            memory.device(),
                            target,
                            source,
                            count * Long.BYTES,
                            memory.stream().handle());
        }
    }

    /// Copies sums to columns of their own, which outlive this object.
    DeviceColumns columns(long count, long... from) {
        DeviceColumns result = DeviceColumns.allocate(memory, KeyedSums.SCHEMA, count);
        try {
            fill(result, count, from);
            return result;
        } catch (RuntimeException | Error failure) {
            result.close();
            throw failure;
        }
    }

    private void fill(DeviceColumns result, long count, long... from) {
        try (DeviceColumns.Use use = result.use()) {
            long handle = memory.stream().handle();
            copies().fillBytes(memory.device(), use.address(), (byte) 0xff, result.byteSize(), handle);
            for (int column = 0; column < from.length; column++) {
                copy(use.values(column), from[column], count);
            }
        }
    }

    private Copies copies() {
        return memory.memory().driver().copies();
    }

    @Override
    public void close() {
        buffers.forEach(DeviceBuffer::close);
    }
}
