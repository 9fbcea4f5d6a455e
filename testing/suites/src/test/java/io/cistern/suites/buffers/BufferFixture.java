package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/// Opens driver, device memory and streams for one test, and checks afterwards that no block is left and that
/// the simulated GPU reported no misuse. The allocator is `caching`, which must be on the class path.
@Timeout(120)
abstract class BufferFixture {
    static final int DEVICE = 0;
    static final int KIB = 1 << 10;
    static final int MIB = 1 << 20;

    /// A driver may wait for running work in calls that don't say so, so streams are released after this time.
    /// It bounds how long a test takes, never whether it passes.
    private static final long LONGEST_HOLD_MILLIS = 5_000;

    private final BufferContract suite;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();
    private final Deque<StreamLatch> latches = new ArrayDeque<>();
    CudaDriver driver;
    DeviceMemory memory;
    Allocator allocator;
    CudaStream stream;

    BufferFixture(BufferContract suite) {
        this.suite = suite;
    }

    @BeforeEach
    void openMemory() {
        driver = suite.openDriver();
        memory = DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
        allocator = memory.setCurrent("caching");
        stream = closedLater(CudaStream.open(memory, DEVICE));
    }

    @AfterEach
    void nothingIsLeft() throws Exception {
        try (CudaDriver closedLast = driver) {
            latches.forEach(StreamLatch::release);
            while (!open.isEmpty()) {
                open.pop().close();
            }
            assertThat(memory.liveBlocks()).as("blocks left").isEmpty();
            memory.close();
            if (closedLast instanceof SimulatedGpu gpu) {
                assertThat(gpu.misuses()).isEmpty();
            }
        }
    }

    <T extends AutoCloseable> T closedLater(T thing) {
        open.push(thing);
        return thing;
    }

    CudaStream anotherStream() {
        return closedLater(CudaStream.open(memory, DEVICE));
    }

    /// Returns a latch. Create it before streams are busy; it releases them before anything else is closed.
    StreamLatch latch() {
        StreamLatch latch = closedLater(new StreamLatch(driver, DEVICE));
        latches.push(latch);
        Thread watch = Thread.startVirtualThread(() -> letGoInTime(latch));
        closedLater(() -> {
            watch.interrupt();
            watch.join();
        });
        return latch;
    }

    private static void letGoInTime(StreamLatch latch) {
        try {
            Thread.sleep(LONGEST_HOLD_MILLIS);
            latch.release();
        } catch (InterruptedException closed) {
            // The test is over.
        }
    }

    DeviceBuffer buffer(long byteSize) {
        return closedLater(DeviceBuffer.allocate(byteSize, stream));
    }

    DeviceBuffer bufferOf(byte... bytes) {
        DeviceBuffer buffer = buffer(bytes.length);
        buffer.copyFrom(MemorySegment.ofArray(bytes));
        return buffer;
    }

    static byte[] random(int byteSize) {
        byte[] bytes = new byte[byteSize];
        new Random(byteSize).nextBytes(bytes);
        return bytes;
    }

    static byte[] contents(DeviceBuffer buffer) {
        return buffer.elements(ValueLayout.JAVA_BYTE).toBytes();
    }

    static byte[] filled(int byteSize, int value) {
        byte[] bytes = new byte[byteSize];
        java.util.Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
