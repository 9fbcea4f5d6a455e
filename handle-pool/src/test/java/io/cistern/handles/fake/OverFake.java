package io.cistern.handles.fake;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.LinearSourceProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Two simulated GPUs under a fake library. Closing it checks that nothing was forbidden, and that nothing is
/// left.
public final class OverFake implements AutoCloseable {
    /// What each handle wants on the simulated GPUs, which are Hopper's.
    public static final long WORKSPACE_BYTES = 32L << 20;

    /// The library.
    public final FakeLibraries fake;

    /// Two devices.
    public final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();

    /// Their memory.
    public final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new LinearSourceProvider())))
            .open();

    private final List<DeviceBuffer> buffers = new ArrayList<>();

    /// Begins anew with a library.
    public OverFake(FakeLibraries fake) {
        this.fake = fake;
        fake.reset();
        memory.setCurrent("direct");
    }

    /// A buffer that is closed in the end.
    public synchronized DeviceBuffer buffer(long byteSize, int device, long stream) {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, byteSize, device, stream);
        buffers.add(buffer);
        return buffer;
    }

    /// Code that a thread runs, by the thread's number.
    public interface Work {
        /// Runs it.
        void run(int thread) throws Exception;
    }

    /// Runs code on many threads at once, waits for all, and fails if one did.
    public static void onThreads(Thread.Builder builder, int count, Work work) throws InterruptedException {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add(builder.start(() -> {
                try {
                    work.run(number);
                } catch (Throwable failure) {
                    failures.add(failure);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).isEmpty();
    }

    @Override
    public void close() {
        buffers.forEach(DeviceBuffer::close);
        memory.close();
        assertThat(fake.violation()).isEmpty();
        assertThat(fake.count("destroyed")).as("destroyed").isEqualTo(fake.count("created"));
        assertThat(fake.count("descriptors")).as("descriptors").isZero();
        assertThat(memory.leaks()).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }
}
