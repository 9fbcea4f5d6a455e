package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.cublas.Cublas;
import io.cistern.handles.cublas.Gemm;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

/// Shares a library's handles among many threads, and multiplies matrices by cuBLAS if there is a GPU.
public final class LibraryHandles {
    private static final int SIZE = 256;

    private LibraryHandles() {}

    /// Prints how many handles a thousand threads needed, and one element of a product.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        handlesForThreads(memory);
        multiply(memory);
    }

    /// A library is three functions; the handles of this one are numbers.
    private static void handlesForThreads(DeviceMemory memory) {
        AtomicLong last = new AtomicLong();
        HandleLibrary<Long> library = HandleLibrary.of("numbers", _ -> last.incrementAndGet(), _ -> {}, (_, _) -> {});
        try (CudaStream stream = CudaStream.open(memory, 0);
                HandlePool<Long> pool = HandlePool.open(memory, library)) {
            for (int i = 0; i < 1000; i++) {
                Thread thread = Thread.ofPlatform().start(() -> pool.handle(0, stream.handle()));
                join(thread);
            }
            join(Thread.ofVirtual().start(() -> {
                try (HandleLease<Long> lease = pool.lease(0)) {
                    System.out.println("a virtual thread leases handle " + lease.handle(stream.handle()));
                }
            }));
            System.out.println("handles: " + pool.statistics(0).created() + " for "
                    + pool.statistics(0).threads() + " threads and "
                    + pool.statistics(0).leases() + " lease");
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void multiply(DeviceMemory memory) {
        if (memory.driver().simulated() || !Cublas.availability().available()) {
            System.out.println("no product: it needs a GPU and cuBLAS");
            return;
        }
        float[] twos = new float[SIZE * SIZE];
        Arrays.fill(twos, 2);
        try (CudaStream stream = CudaStream.open(memory, 0);
                Cublas cublas = Cublas.open(memory);
                DeviceBuffer a = DeviceBuffer.allocate(4L * twos.length, stream);
                DeviceBuffer c = DeviceBuffer.allocate(4L * twos.length, stream)) {
            a.copyFrom(MemorySegment.ofArray(twos));
            cublas.gemm(Gemm.of(SIZE, SIZE, SIZE), a, a, c, stream.handle());
            System.out.println(
                    "each element is " + c.elements(ValueLayout.JAVA_FLOAT).toFloats()[0]);
        }
    }
}
