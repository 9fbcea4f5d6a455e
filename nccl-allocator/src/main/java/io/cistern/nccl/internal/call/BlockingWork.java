package io.cistern.nccl.internal.call;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/// Makes calls that may wait for other ranks and that must all come from one OS thread. A virtual thread would
/// hold its carrier during the wait and may change carriers between calls. So its calls run on a platform
/// thread, and it parks.
public final class BlockingWork {
    private BlockingWork() {}

    /// A class of its own, so that no thread pool exists unless a virtual thread calls.
    private static final class Threads {
        static final ExecutorService EXECUTOR = Executors.newCachedThreadPool(Thread.ofPlatform()
                .daemon()
                .inheritInheritableThreadLocals(false) // nor the caller's class loader
                .name("cistern-nccl-", 0)
                .factory());
    }

    public static void run(Runnable work) {
        get(() -> {
            work.run();
            return true;
        });
    }

    /// Returns the result once the work has ended; an interrupt does not end the wait but is kept.
    public static <T> T get(Supplier<T> work) {
        if (!Thread.currentThread().isVirtual()) {
            return work.get();
        }
        try {
            return CompletableFuture.supplyAsync(work, Threads.EXECUTOR).join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof RuntimeException failure) { // a switch would have to be linked first
                throw failure;
            }
            if (e.getCause() instanceof Error failure) {
                throw failure;
            }
            throw e;
        }
    }
}
