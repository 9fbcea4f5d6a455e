package com.example.outside;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Allocates, copies, swaps to a pool: what the first pages of the documentation show.
public final class Main {
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        System.out.println("current allocator: " + Allocators.current().name());
        try (CudaStream stream = CudaStream.open(memory, 0);
                DeviceBuffer buffer = DeviceBuffer.allocate(12, stream)) {
            buffer.copyFrom(MemorySegment.ofArray(new float[] {1, 2, 3}));
            float sum = 0;
            for (float value : buffer.elements(ValueLayout.JAVA_FLOAT).toFloats()) {
                sum += value;
            }
            System.out.println("sum of the buffer: " + sum);
        }
        try (MemoryPool pool = MemoryPool.of("vmm");
                Scope scope = pool.enter()) {
            System.out.println("pool: " + pool.spec());
        }
        for (String spec : List.of("async", "direct", "symmetric", "limit:upstream=caching,bytes=1GiB")) {
            try (Allocator allocator = memory.open(spec)) {
                System.out.println("opened: " + allocator.name());
            }
        }
    }
}
