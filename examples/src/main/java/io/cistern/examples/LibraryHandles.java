package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import java.util.concurrent.atomic.AtomicLong;

/// Shares a library's handles among many threads.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-handle-pool`.
public final class LibraryHandles {
    private LibraryHandles() {}

    /// Prints how many handles a thousand threads needed. A library is three functions; the handles of this one are
    /// numbers.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
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
}
