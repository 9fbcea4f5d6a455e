package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/// Makes calls that wait for the GPU. A virtual thread would block its carrier, so it parks while a
/// platform thread makes the call. Platform threads are started on demand and end when idle.
final class BlockingCalls {
    private BlockingCalls() {}

    /// A holder class, so that a program without virtual threads creates no executor.
    private static final class Threads {
        static final ExecutorService EXECUTOR = Executors.newCachedThreadPool(Thread.ofPlatform()
                .daemon()
                .inheritInheritableThreadLocals(false) // nor the caller's class loader
                .name("cistern-cuda-wait-", 0)
                .factory());
    }

    /// Runs a call and waits for it. An interrupt does not end the wait, but the thread stays interrupted.
    static void run(Runnable call) {
        if (!Thread.currentThread().isVirtual()) {
            call.run();
            return;
        }
        try {
            CompletableFuture.runAsync(call, Threads.EXECUTOR).join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof CudaException failure) {
                throw failure;
            }
            throw e;
        }
    }
}
