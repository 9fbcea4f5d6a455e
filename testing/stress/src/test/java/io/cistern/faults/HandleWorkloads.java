package io.cistern.faults;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandleStrategy;
import io.cistern.spi.TrimMode;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/// What programs do with pools of handles.
final class HandleWorkloads {
    private HandleWorkloads() {}

    /// Wants workspaces.
    private static final class Library implements HandleLibrary<Integer> {
        private final AtomicInteger next = new AtomicInteger();

        @Override
        public String name() {
            return "numbered";
        }

        @Override
        public Integer create(int device) {
            return next.incrementAndGet();
        }

        @Override
        public void destroy(Integer handle, int device) {}

        @Override
        public void setStream(Integer handle, long stream) {}

        @Override
        public long workspaceBytes(int device) {
            return 1 << 20;
        }
    }

    /// Takes the workspaces of streams that are not set.
    private static void askForTooMuch(GpuProgram program) {
        try {
            program.allocate(GpuProgram.LIMIT, 0);
        } catch (DeviceOutOfMemoryException refused) {
            program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
        }
    }

    /// Handles of threads that come and go, leases, and memory that runs out.
    static void all(GpuProgram program) throws InterruptedException {
        for (HandleStrategy strategy : HandleStrategy.values()) {
            HandlePool<Integer> pool = HandlePool.open(
                    program.memory,
                    new Library(),
                    HandlePoolOptions.DEFAULT.withStrategy(strategy).withMaxHandles(3));
            program.toClose.add(pool);
            if (!Thread.currentThread().isVirtual()) {
                pool.handle(0, program.streams[0]);
                pool.handle(0, program.streams[1]);
            }
            try (HandleLease<Integer> lease = pool.lease(0)) {
                lease.handle(program.streams[0]);
                lease.handle(program.streams[1]);
                askForTooMuch(program);
            }
            Thread other = Thread.ofPlatform().start(() -> pool.handle(0, program.streams[2]));
            other.join();
            program.endStream(0);
            pool.statistics(0);
            pool.trim(0, Duration.ZERO);
            pool.close();
        }
    }
}
