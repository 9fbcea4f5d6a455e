package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cistern.cuda.Devices;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/// Calls make no garbage, but what the simulated GPU's contexts make where a stream is set.
class GarbageTests {
    private static final int WARM_UP = 50_000;
    private static final int MEASURED = 100_000;

    /// What the measurement itself may allocate; one object a call would be 1.6 million bytes.
    private static final long NOISE_BYTES = 20_000;

    /// Wants workspaces.
    private record Library(Object handle) implements HandleLibrary<Object> {
        @Override
        public String name() {
            return "quiet";
        }

        @Override
        public Object create(int device) {
            return handle;
        }

        @Override
        public void destroy(Object ended, int device) {}

        @Override
        public void setStream(Object set, long stream) {}

        @Override
        public long workspaceBytes(int device) {
            return 1 << 20;
        }
    }

    @Test
    void handlesAreFoundAndTheirStreamsAreChangedWithoutGarbage() {
        try (HandlePoolFixture fixture = new HandlePoolFixture();
                HandlePool<Object> pool = HandlePool.open(fixture.memory, new Library(new Object()))) {
            assertThat(bytes(() -> pool.handle(0, fixture.stream))).isLessThan(NOISE_BYTES);
            Devices devices = fixture.gpu.devices();
            long simulators = bytes(() -> devices.leaveContext(0, devices.enterContext(0)));
            assertThat(bytes(() -> {
                        pool.handle(0, fixture.other);
                        pool.handle(0, fixture.stream);
                    }))
                    .isLessThan(2 * simulators + NOISE_BYTES);
        }
    }

    private static long bytes(Runnable call) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        run(call, WARM_UP);
        long before = threads.getCurrentThreadAllocatedBytes();
        run(call, MEASURED);
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    private static void run(Runnable call, int rounds) {
        for (int i = 0; i < rounds; i++) {
            call.run();
        }
    }
}
