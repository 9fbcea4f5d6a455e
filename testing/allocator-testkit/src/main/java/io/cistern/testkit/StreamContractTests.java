package io.cistern.testkit;

import io.cistern.hazards.StreamHazards;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Streams that are created and destroyed, each end announced.
abstract class StreamContractTests extends ConformanceContractTests {
    private static final long[] SIZES = {512, 64 * KIB, 3 * MIB, 40 * MIB};

    StreamContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @Test
    void memoryOfAnEndedStreamIsUsableOnOthers() {
        long byteSize = driver.memory().freeBytes(DEVICE) * 5 / 8;
        for (int i = 0; i < 4; i++) {
            long stream = stream();
            free(allocate(byteSize, stream));
            assertContents();
            closeStream(stream);
        }
    }

    @Test
    void manyStreamsComeAndGo() {
        for (int i = 0; i < 100; i++) {
            long stream = stream();
            for (long byteSize : new long[] {512, 20 * KIB, 2 * MIB}) {
                free(allocate(byteSize, stream));
            }
            closeStream(stream);
        }
        assertContents();
    }

    @Test
    void blocksOutliveTheirStream() {
        long survivor = stream();
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            long stream = stream();
            blocks.add(allocate((1L + i) * 100 * KIB, stream));
            order(stream, survivor);
            closeStream(stream);
        }
        for (Block block : blocks) {
            free(block, survivor);
        }
        assertContents();
    }

    @Test
    void workUnderWayAtTheEndOfAStreamIsWaitedFor() {
        StreamLatch latch = latch();
        long ending = stream();
        long other = stream();
        Block block = allocate(3 * MIB, ending);
        latch.hold(ending);
        Thread letGo = Thread.ofPlatform().start(latch::release);
        free(block, ending);
        closeStream(ending);
        for (int i = 0; i < 10; i++) {
            free(allocate(3 * MIB, other));
        }
        joinUninterrupted(letGo);
        assertContents();
    }

    /// When a free names a stream that has ended and whose handle the driver may have reused.
    enum Free {
        BEFORE_THE_HANDLE_IS_REUSED,
        WHEN_THE_HANDLE_IS_REUSED,
        AFTER_THE_NEW_STREAM_ALLOCATED
    }

    @ParameterizedTest
    @EnumSource
    void memoryFreedOnAnEndedStreamWaitsForItsWork(Free when) {
        StreamLatch latch = latch();
        long ending = stream();
        long other = stream();
        List<Block> blocks = new ArrayList<>();
        for (long byteSize : SIZES) {
            blocks.add(allocate(byteSize, ending));
            blocks.add(allocate(byteSize, other));
        }
        order(other, ending);
        latch.hold(ending);
        whileHeld(latch, () -> {
            blocks.forEach(block -> useLast(block, ending));
            closeStream(ending);
            if (when == Free.BEFORE_THE_HANDLE_IS_REUSED) {
                blocks.forEach(block -> freeOnEnded(block, ending));
            }
            long next = stream();
            if (when == Free.AFTER_THE_NEW_STREAM_ALLOCATED) {
                allocateAll(next);
            }
            if (when != Free.BEFORE_THE_HANDLE_IS_REUSED) {
                passOver();
                blocks.forEach(block -> freeOnEnded(block, ending));
            }
            allocateAll(next);
            allocateAll(other);
            driver.streams().synchronize(DEVICE, next);
            driver.streams().synchronize(DEVICE, other);
        });
        assertContents();
    }

    /// Makes the race detector treat all work as done, because it takes a reused handle for the new stream's.
    private void passOver() {
        StreamHazards.of(memory).orElseThrow().waitForDevice(DEVICE).run();
    }

    /// Reads a block, which shows whether others have written there, and then writes what spoils their contents.
    private void useLast(Block block, long stream) {
        verify(block, stream);
        driver.copies().fillBytes(DEVICE, block.address(), (byte) 0x5A, block.byteSize(), stream);
    }

    private void allocateAll(long stream) {
        for (long byteSize : SIZES) {
            allocate(byteSize, stream);
            allocate(byteSize, stream);
        }
    }

    private static void joinUninterrupted(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
