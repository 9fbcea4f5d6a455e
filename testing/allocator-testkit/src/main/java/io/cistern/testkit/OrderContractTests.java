package io.cistern.testkit;

import io.cistern.cuda.Streams;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Stream order: the freeing stream may reuse memory at once, another stream only when the freeing stream has
/// passed the free. A latch decides how far a stream has got. If an allocator hands memory out too early, the
/// memory is overwritten before it is verified.
abstract class OrderContractTests extends ConformanceContractTests {
    private static final long[] SIZES = {512, 64 * KIB, 3 * MIB, 40 * MIB};

    private StreamLatch latch;
    private long held;
    private long other;

    OrderContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @BeforeEach
    void makeStreams() {
        latch = latch();
        held = stream();
        other = stream();
    }

    @Test
    void theSameStreamUsesFreedMemoryAtOnce() {
        for (int i = 0; i < 200; i++) {
            for (long byteSize : SIZES) {
                free(allocate(byteSize, held));
            }
        }
        assertContents();
    }

    @Test
    void memoryFreedOnAStreamIsNotOverwrittenByAnotherBeforeTheFree() {
        Block[] blocks = new Block[SIZES.length];
        for (int i = 0; i < SIZES.length; i++) {
            blocks[i] = allocate(SIZES[i], held);
        }
        latch.hold(held);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                free(block);
            }
            for (long byteSize : SIZES) {
                allocate(byteSize, other);
                allocate(byteSize, other);
            }
            driver.streams().synchronize(DEVICE, other);
        });
        assertContents();
    }

    @Test
    void memoryFreedOnAnotherStreamIsNotOverwrittenTooEarly() {
        Block[] blocks = new Block[SIZES.length];
        for (int i = 0; i < SIZES.length; i++) {
            blocks[i] = allocate(SIZES[i], other);
        }
        latch.hold(held);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                handOver(block, held);
            }
            for (long byteSize : SIZES) {
                allocate(byteSize, other);
                allocate(byteSize, other);
            }
            driver.streams().synchronize(DEVICE, other);
        });
        assertContents();
    }

    @Test
    void memoryFreedOnAnotherStreamIsUsedByThatStreamAtOnce() {
        for (long byteSize : SIZES) {
            for (int i = 0; i < 20; i++) {
                handOver(allocate(byteSize, held), other);
                free(allocate(byteSize, other));
            }
        }
        assertContents();
    }

    @Test
    void aThirdStreamDoesNotGetWhatASecondStillReads() {
        long third = stream();
        Block block = allocate(3 * MIB, other);
        latch.hold(held);
        whileHeld(latch, () -> {
            handOver(block, held);
            for (int i = 0; i < 4; i++) {
                free(allocate(3 * MIB, third));
                free(allocate(MIB, third));
            }
            driver.streams().synchronize(DEVICE, third);
        });
        assertContents();
    }

    @Test
    void blocksGoRoundBetweenStreams() {
        long[] ring = {held, other, stream(), stream()};
        for (int i = 0; i < 400; i++) {
            handOver(allocate(SIZES[i % 3], ring[i % 4]), ring[(i + 1) % 4]);
        }
        assertContents();
    }

    @Test
    void whatAThreadsOwnStreamFreedIsNotOverwrittenByAnotherThread() {
        Block block = allocate(3 * MIB, Streams.PER_THREAD_DEFAULT);
        latch.hold(Streams.PER_THREAD_DEFAULT);
        whileHeld(latch, () -> {
            free(block);
            CompletableFuture.runAsync(this::useOwnStream, Thread.ofPlatform().name("second")::start)
                    .join();
        });
        assertContents();
    }

    private void useOwnStream() {
        free(allocate(3 * MIB, Streams.PER_THREAD_DEFAULT));
        driver.streams().synchronize(DEVICE, Streams.PER_THREAD_DEFAULT);
    }

    @Test
    void hostFunctionsAreWorkToo() {
        Block block = allocate(64 * KIB, held);
        driver.streams().launchHostFunction(DEVICE, held, () -> {});
        free(block);
        free(allocate(64 * KIB, other));
        assertContents();
    }
}
