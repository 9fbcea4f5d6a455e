package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.buffers.CopyBatch;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CopyOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.testkit.DiscoveredCatalog;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Arrays that the driver reads in place. No test holds a stream, because programs with such copies must not.
abstract class DirectCopyContractTests extends BufferFixture {
    private DeviceMemory direct;

    DirectCopyContractTests(BufferContract suite) {
        super(suite);
    }

    @BeforeEach
    void openDirectMemory() {
        direct = closedLater(
                DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open());
        direct.setCurrent("caching");
        CopyOptions.of(direct).copyArraysDirectly(true);
    }

    private DeviceBuffer bufferOf(MemorySegment array) {
        DeviceBuffer buffer = closedLater(DeviceBuffer.allocate(direct, array.byteSize(), DEVICE, stream.handle()));
        buffer.copyFrom(array);
        return buffer;
    }

    private long pinnings() {
        return driver.calls().of(DriverCall.MEM_HOST_ALLOC);
    }

    @Test
    void theDriverReadsArraysWhereTheyAre() {
        long before = pinnings();
        for (int byteSize : new int[] {1, 4096, MIB - 1, 8 * MIB - 1}) {
            DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(random(byteSize)));
            assertThat(pinnings()).as("pinned for %s bytes", byteSize).isEqualTo(before);
            assertThat(contents(buffer)).isEqualTo(random(byteSize));
            before = pinnings();
        }
    }

    @Test
    void largeArraysAreStagedAllTheSame() {
        long before = pinnings();
        DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(random(8 * MIB)));
        assertThat(pinnings()).isGreaterThan(before);
        assertThat(contents(buffer)).isEqualTo(random(8 * MIB));
    }

    @Test
    void partsOfArraysOfAnyTypeAreRead() {
        MemorySegment array = MemorySegment.ofArray(new double[1001]);
        array.copyFrom(MemorySegment.ofArray(random(8008)));
        assertThat(contents(bufferOf(array.asSlice(13, 7000).asReadOnly())))
                .isEqualTo(Arrays.copyOfRange(random(8008), 13, 7013));
    }

    @Test
    void anArrayMayChangeOnceTheCopyReturned() {
        DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(filled(MIB, 9)));
        byte[] bytes = filled(MIB, 1);
        buffer.copyFrom(MemorySegment.ofArray(bytes), stream.handle(), CopyMode.NON_BLOCKING);
        Arrays.fill(bytes, (byte) 2);
        assertThat(contents(buffer)).containsOnly(1);
    }

    /// The garbage collector moves young arrays while others are copied.
    @Test
    void arraysAreReadWholeWhileTheCollectorMovesOthers() throws InterruptedException {
        DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(filled(MIB, 0)));
        Thread collecting = Thread.ofPlatform().start(() -> {
            try {
                while (true) {
                    System.gc();
                    Thread.sleep(10); // else the copying thread makes no progress
                }
            } catch (InterruptedException done) {
                // The copies are done.
            }
        });
        try {
            for (int i = 1; i <= 20; i++) {
                buffer.copyFrom(MemorySegment.ofArray(filled(MIB, i)));
                assertThat(contents(buffer)).isEqualTo(filled(MIB, i));
            }
        } finally {
            collecting.interrupt();
            collecting.join();
        }
    }

    @Test
    void aBatchReadsThemToo() {
        DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(filled(MIB, 0)));
        new CopyBatch()
                .toDevice(buffer, MemorySegment.ofArray(filled(MIB, 5)))
                .submit(stream.handle(), CopyMode.BLOCKING);
        assertThat(contents(buffer)).containsOnly(5);
    }

    @Test
    void noneIsCopiedInACapture() {
        DeviceBuffer buffer = bufferOf(MemorySegment.ofArray(filled(100, 1)));
        try (GraphCapture _ = GraphCapture.begin(direct, DEVICE, stream.handle(), CaptureMode.THREAD_LOCAL)) {
            MemorySegment array = MemorySegment.ofArray(filled(100, 2));
            assertThatIllegalStateException()
                    .isThrownBy(() -> buffer.copyFrom(array, stream.handle(), CopyMode.NON_BLOCKING))
                    .withMessageContaining("being captured");
        }
        assertThat(contents(buffer)).containsOnly(1);
    }
}
