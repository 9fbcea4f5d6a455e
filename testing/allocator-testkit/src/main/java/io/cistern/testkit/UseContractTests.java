package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.errors.UnknownAddressException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks that several streams use at once. After a free on one stream, the memory may be reused only when the
/// other streams have passed their recorded uses, or the event that the free names. A latch holds the readers,
/// so any reuse that comes too early overwrites what they read.
abstract class UseContractTests extends ConformanceContractTests {
    private static final long[] SIZES = {512, 64 * KIB, 3 * MIB, 40 * MIB};

    private StreamLatch latch;
    private long owner;
    private long reader;

    UseContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @BeforeEach
    void makeStreams() {
        latch = latch();
        owner = stream();
        reader = stream();
    }

    /// Returns a block of each size, and holds the given streams.
    private Block[] blocksReadOn(long... readers) {
        Block[] blocks = new Block[SIZES.length];
        for (int i = 0; i < SIZES.length; i++) {
            blocks[i] = allocate(SIZES[i], owner);
        }
        for (long held : readers) {
            latch.hold(held);
        }
        return blocks;
    }

    private void allocateAll(long stream) {
        for (long byteSize : SIZES) {
            allocate(byteSize, stream);
            allocate(byteSize, stream);
        }
    }

    @Test
    void aBlockUsedOnAnotherStreamIsNotHandedOutBeforeThatUse() {
        Block[] blocks = blocksReadOn(reader);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                use(block, reader);
                free(block);
            }
            allocateAll(owner);
            allocateAll(stream());
        });
        assertContents();
    }

    @Test
    void workEnqueuedAfterTheUseWasRecordedCountsUntilTheFree() {
        Block[] blocks = blocksReadOn();
        for (Block block : blocks) {
            order(owner, reader);
            memory.recordUse(block.address(), reader);
        }
        latch.hold(reader);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                verify(block, reader);
                free(block);
            }
            allocateAll(owner);
        });
        assertContents();
    }

    @Test
    void aBlockUsedOnSeveralStreamsWaitsForAllOfThem() {
        long second = stream();
        StreamLatch secondLatch = latch();
        Block[] blocks = blocksReadOn(reader);
        secondLatch.hold(second);
        whileHeld(
                latch,
                () -> whileHeld(secondLatch, () -> {
                    for (Block block : blocks) {
                        use(block, reader);
                        use(block, second);
                        free(block);
                    }
                    latch.release();
                    allocateAll(owner);
                }));
        assertContents();
    }

    @Test
    void aBlockFreedOnOneReaderWaitsForTheOther() {
        long second = stream();
        Block[] blocks = blocksReadOn(reader);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                use(block, reader);
                use(block, second);
                handOver(block, second);
            }
            allocateAll(second);
            allocateAll(owner);
        });
        assertContents();
    }

    @Test
    void usesOnAStreamThatEndedCountUntilItsEnd() {
        Block[] blocks = blocksReadOn(reader);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                use(block, reader);
            }
            closeStream(reader);
            long successor = stream();
            for (Block block : blocks) {
                free(block);
            }
            allocateAll(owner);
            allocateAll(successor);
        });
        assertContents();
    }

    @Test
    void usesOnTheStreamOfTheFreeNeedNoWait() {
        for (int i = 0; i < 50; i++) {
            for (long byteSize : SIZES) {
                Block block = allocate(byteSize, owner);
                memory.recordUse(block.address(), owner);
                memory.recordUse(block.address(), owner);
                free(block);
            }
        }
        assertContents();
    }

    @Test
    void memoryFreedAfterAnEventComesAgainWhenTheEventHasPassed() {
        Block[] blocks = blocksReadOn(reader);
        whileHeld(latch, () -> {
            for (Block block : blocks) {
                order(owner, reader);
                verify(block, reader);
                freeAfter(block, reader);
            }
            allocateAll(owner);
            allocateAll(stream());
        });
        assertContents();
    }

    @Test
    void freesAfterEventsOfManyStreamsAreKeptApart() {
        Deque<Block> waiting = new ArrayDeque<>();
        for (int i = 0; i < 40; i++) {
            long each = stream();
            waiting.add(allocate(SIZES[i % 3], each));
            if (waiting.size() > 20) {
                verifyAndFree(waiting.remove());
            }
        }
        waiting.forEach(this::verifyAndFree);
        allocateAll(owner);
        assertContents();
    }

    private void verifyAndFree(Block block) {
        verify(block, block.stream());
        freeAfter(block, block.stream());
    }

    @Test
    void manyBlocksUsedAndFreedDoNotRunOutOfMemory() {
        long byteSize = driver.memory().freeBytes(DEVICE) / 6;
        for (int i = 0; i < 100; i++) {
            Block block = allocate(byteSize, owner);
            use(block, reader);
            free(block);
        }
        assertContents();
    }

    @Test
    void onlyLiveBlocksCanBeUsedOrFreedAfterAnEvent() {
        Block block = allocate(MIB, owner);
        long event = driver.events().create(DEVICE);
        assertUnknown(() -> memory.recordUse(block.address() + 256, reader));
        assertUnknown(() -> memory.freeAfter(block.address() + 256, event));
        free(block);
        assertUnknown(() -> memory.recordUse(block.address(), reader));
        assertUnknown(() -> memory.freeAfter(block.address(), event));
        memory.recordUse(0, reader);
        memory.freeAfter(0, event);
        driver.events().destroy(DEVICE, event);
    }

    private static void assertUnknown(Runnable call) {
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(call::run);
    }

    @Test
    void randomWorkWithUsesOnStreamsThatComeAndGo() {
        long seed = Seed.current();
        Random random = new Random(seed);
        List<Long> alive = new ArrayList<>(List.of(owner, reader, stream(), stream()));
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 1500; i++) {
            long stream = alive.get(random.nextInt(alive.size()));
            if (blocks.size() < 20 || random.nextInt(3) == 0) {
                blocks.add(allocate(1L << random.nextInt(6, 22), owner));
            } else if (random.nextBoolean()) {
                use(blocks.get(random.nextInt(blocks.size())), stream);
            } else {
                Block block = blocks.remove(random.nextInt(blocks.size()));
                handOver(block, stream);
            }
            if (random.nextInt(40) == 0) {
                closeStream(alive.remove(random.nextInt(1, alive.size())));
                alive.add(stream());
            }
        }
        assertThatContentsHold(seed);
    }

    private void assertThatContentsHold(long seed) {
        try {
            assertContents();
        } catch (AssertionError failure) {
            failure.addSuppressed(new AssertionError("random work with " + Seed.describe(seed)));
            throw failure;
        }
    }
}
