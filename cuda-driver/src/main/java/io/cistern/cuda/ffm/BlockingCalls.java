package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/// Makes calls that wait for the GPU. A virtual thread would hold its carrier meanwhile, so its call goes to a
/// platform thread and it parks; the threads are made when first needed and go when idle.
final class BlockingCalls {
    private BlockingCalls() {}

    /// In a class of its own, so that no threads are made where there are no virtual threads.
    private static final class Threads {
        static final ExecutorService EXECUTOR = Executors.newCachedThreadPool(
                Thread.ofPlatform().daemon().name("cistern-cuda-wait-", 0).factory());
    }

    /// Returns when the call has; an interrupt does not end the wait but is kept.
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
