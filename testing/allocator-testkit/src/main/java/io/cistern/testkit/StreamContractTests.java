package io.cistern.testkit;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Streams that are created and destroyed, each end announced.
abstract class StreamContractTests extends ConformanceContractTests {
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

    private static void joinUninterrupted(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
