package io.cistern.pressure;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;

/// An arbiter with 100 bytes to give, and three tasks.
@Timeout(30)
abstract class TaskFixture {
    final SmallGpu gpu = new SmallGpu();
    final Task high = gpu.arbiter.task(1, 10);
    final Task middle = gpu.arbiter.task(2, 5);
    final Task low = gpu.arbiter.task(3, 0);

    @AfterEach
    void close() {
        gpu.close();
    }

    /// Takes memory, says so, and holds it until told.
    FutureTask<Long> hold(Task task, long byteSize, CountDownLatch until) {
        CountDownLatch taken = new CountDownLatch(1);
        FutureTask<Long> holder = gpu.start(task, () -> {
            long address = gpu.allocate(byteSize);
            taken.countDown();
            gpu.arbiter.outside(() -> {
                until.await();
                return true;
            });
            gpu.free(address);
            return byteSize;
        });
        try {
            taken.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return holder;
    }

    FutureTask<Long> allocateAndFree(Task task, long byteSize) {
        return gpu.start(task, () -> {
            gpu.free(gpu.allocate(byteSize));
            return byteSize;
        });
    }
}
