package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/// Two simulated GPUs, a library that checks how it is used, and pools over it. Closing it checks that
/// nothing was wrong, and that nothing is left.
final class HandlePoolFixture implements AutoCloseable {
    final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    final CheckedLibrary library = new CheckedLibrary(gpu);
    final long stream = gpu.streams().create(0);
    final long other = gpu.streams().create(0);

    HandlePoolFixture() {
        memory.setCurrent("direct");
    }

    /// Makes an allocator with hooks the current one.
    HookedAllocator useHooked() {
        HookedAllocator hooked = new HookedAllocator();
        memory.currents().set(memory.open(OpenOptions.made("hooked", hooked)));
        return hooked;
    }

    HandlePool<CheckedLibrary.Handle> open(HandlePoolOptions options) {
        return HandlePool.open(memory, library, options);
    }

    long liveBlocks() {
        return memory.statistics(0).liveBlocks();
    }

    /// Runs code on a thread of its own and waits until that has ended.
    static <T> T onNewThread(Callable<T> code) {
        return on(Thread.ofPlatform(), code);
    }

    static <T> T onVirtualThread(Callable<T> code) {
        return on(Thread.ofVirtual(), code);
    }

    private static <T> T on(Thread.Builder threads, Callable<T> code) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread thread = threads.start(() -> {
            try {
                result.complete(code.call());
            } catch (Throwable failure) {
                result.completeExceptionally(failure);
            }
        });
        try {
            thread.join();
            return result.get();
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw new AssertionError(failure);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /// Waits until something is true, at most as long as the time limit of the test.
    static void await(BooleanSupplier state) {
        while (!state.getAsBoolean()) {
            LockSupport.parkNanos(100_000);
            if (Thread.interrupted()) {
                throw new AssertionError("it did not become true in time");
            }
        }
    }

    static HandlePoolOptions soon() {
        return HandlePoolOptions.DEFAULT.withCloseWait(Duration.ofMillis(20)).withMaxWait(Duration.ofMillis(50));
    }

    @Override
    public void close() {
        memory.close();
        assertThat(library.wrong()).isEmpty();
        assertThat(library.alive()).as("handles that are alive").isZero();
        assertThat(memory.liveBlocks()).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("events");
        gpu.close();
    }
}
