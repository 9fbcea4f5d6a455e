package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.UnknownAddressException;
import org.junit.jupiter.api.Test;

/// Single calls: sizes, alignment, invalid arguments, double frees, closing.
abstract class BasicContractTests extends ConformanceContractTests {
    BasicContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @Test
    void zeroBytesAreAddressZeroWhichCanBeFreed() {
        long stream = stream();
        assertThat(allocator.allocate(0, DEVICE, stream)).isZero();
        memory.free(0, stream);
    }

    @Test
    void oneByteIsABlock() {
        Block block = allocate(1, stream());
        free(block);
        assertContents();
    }

    @Test
    void aNegativeSizeIsRefused() {
        long stream = stream();
        assertThatThrownBy(() -> allocator.allocate(-1, DEVICE, stream)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> allocator.allocate(Long.MIN_VALUE, DEVICE, stream))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void addressesAreMultiplesOf256() {
        long stream = stream();
        for (long byteSize = 1; byteSize <= 32 * MIB; byteSize = byteSize * 5 / 2 + 1) {
            assertThat(allocate(byteSize, stream).address() % 256)
                    .as("%s bytes", byteSize)
                    .isZero();
        }
    }

    @Test
    void aBlockIsFreedOnce() {
        long stream = stream();
        Block block = allocate(4 * KIB, stream);
        free(block);
        assertThatThrownBy(() -> memory.free(block.address(), stream)).isInstanceOf(UnknownAddressException.class);
    }

    @Test
    void aFreedBlockIsHandedOutOnce() {
        long stream = stream();
        for (long byteSize = 512; byteSize <= 32 * MIB; byteSize *= 8) {
            free(allocate(byteSize, stream));
            allocate(byteSize, stream);
            allocate(byteSize, stream);
        }
        assertContents();
    }

    @Test
    void anAddressInsideABlockIsUnknown() {
        long stream = stream();
        Block block = allocate(4 * KIB, stream);
        assertThatThrownBy(() -> memory.free(block.address() + 256, stream))
                .isInstanceOf(UnknownAddressException.class);
    }

    @Test
    void defaultStreamsAreStreams() {
        for (long stream : new long[] {0, io.cistern.cuda.Streams.LEGACY_DEFAULT}) {
            for (int i = 0; i < 10; i++) {
                free(allocate(64 * KIB, stream));
            }
        }
        assertContents();
    }

    @Test
    void closingLeavesLiveBlocksAlone() {
        long stream = stream();
        Block block = allocate(64 * KIB, stream);
        allocator.close();
        assertThatThrownBy(() -> allocator.allocate(1, DEVICE, stream)).isInstanceOf(IllegalStateException.class);
        assertThat(allocator.isDrained()).isFalse();
        free(block);
        assertContents();
        assertThat(allocator.isDrained()).isTrue();
    }

    @Test
    void closingAnUnusedAllocatorReturnsEverything() {
        allocator.close();
        assertThat(allocator.isDrained()).isTrue();
    }
}
