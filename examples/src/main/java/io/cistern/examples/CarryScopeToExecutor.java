package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Streams;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/// Allocates the memory of a region of code from its own allocator, and carries that choice to
/// the region's workers.
///
/// A scope belongs to the thread that opened it, so without the carrier the workers allocate from the current
/// allocator. `-Dcistern.scopes.report=true` reports such workers.
public final class CarryScopeToExecutor {
    private CarryScopeToExecutor() {}

    /// Prints which allocator served how many blocks.
    public static void main(String[] arguments) {
        Allocator current = Allocators.current();
        try (ExecutorService workers = Executors.newFixedThreadPool(4);
                Allocator pool = DeviceMemory.system().open("async")) {
            try (Scope _ = pool.enter()) {
                allocateInTwo(workers);
                print("without carrier", current, pool);

                ScopeCarrier here = ScopeCarrier.capture();
                allocateInTwo(here.executorService(workers));
                print("with carrier", current, pool);
            }
        }
    }

    private static void allocateInTwo(ExecutorService workers) {
        CompletableFuture.allOf(
                        CompletableFuture.runAsync(CarryScopeToExecutor::work, workers),
                        CompletableFuture.runAsync(CarryScopeToExecutor::work, workers))
                .join();
    }

    private static void work() {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(1 << 20, Streams.LEGACY_DEFAULT)) {
            DeviceMemory.system()
                    .driver()
                    .copies()
                    .fillBytes(buffer.device(), buffer.address(), (byte) 1, buffer.byteSize(), buffer.stream());
        }
    }

    private static void print(String how, Allocator current, Allocator pool) {
        System.out.printf(
                "%s: %d blocks from %s, %d from %s%n",
                how,
                current.statistics(0).allocations(),
                current,
                pool.statistics(0).allocations(),
                pool);
    }
}
