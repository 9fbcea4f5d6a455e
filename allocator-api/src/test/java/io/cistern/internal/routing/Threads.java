package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Several threads at once.
final class Threads {
    private Threads() {}

    /// What a thread does.
    interface Body {
        void run(int thread) throws Exception;
    }

    /// Runs something in so many threads, numbered from 0, and waits for all; what one of them threw is thrown.
    static void run(int count, Body body) throws Exception {
        try (var executor = Executors.newFixedThreadPool(count)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                int thread = i;
                running.add(executor.submit(() -> {
                    body.run(thread);
                    return null;
                }));
            }
            for (Future<?> task : running) {
                task.get();
            }
        }
    }
}
