package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import org.junit.jupiter.api.Test;

/// Allocators that are built on open ones: pools over pools, and an allocator that chooses between two by
/// size.
class UpstreamTests extends PoolFixture {
    UpstreamTests() {
        super(256 * MIB);
    }

    /// Small requests from one upstream, large ones from the other.
    private record Binning(DeviceAllocator small, DeviceAllocator large, long largestSmall) implements DeviceAllocator {
        private DeviceAllocator of(long byteSize) {
            return byteSize <= largestSmall ? small : large;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return of(byteSize).allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            of(byteSize).free(address, byteSize, device, stream);
        }
    }

    @Test
    void aPoolTakesItsSegmentsFromAnotherPool() {
        MemoryPool outer = builder().tag("outer").open();
        MemoryPool inner = builder().upstream(outer).tag("inner").open();
        long block = inner.allocate(3 * MIB, DEVICE, stream);
        assertThat(memory.ownerOf(block)).isSameAs(inner);
        assertThat(outer.reservedBytes(DEVICE).orElseThrow()).isGreaterThanOrEqualTo(3 * MIB);
        assertThat(outer.statistics(DEVICE).liveBlocks()).isZero();
        free(block);
        inner.close();
        assertThat(inner.isDrained()).isTrue();
        outer.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(outer.reservedBytes(DEVICE)).hasValue(0);
    }

    /// Also when the outer one was closed, and the inner one alone still has its memory.
    @Test
    void memoryOfAPoolOnAPoolCountsOnceInTheTotal() {
        MemoryPool outer = builder().tag("outer").open();
        MemoryPool inner = builder().upstream(outer).tag("inner").open();
        long block = inner.allocate(3 * MIB, DEVICE, stream);
        long reservedBytes = outer.reservedBytes(DEVICE).orElseThrow();
        assertThat(inner.reservedBytes(DEVICE).orElseThrow()).isBetween(3 * MIB, reservedBytes);
        assertThat(memory.statistics(DEVICE).reservedBytes()).hasValue(reservedBytes);
        outer.close();
        assertThat(memory.statistics(DEVICE).reservedBytes()).isEqualTo(inner.reservedBytes(DEVICE));
        free(block);
        inner.close();
    }

    @Test
    void trimmingAllGivesThePoolsMemoryBackToTheDriver() {
        MemoryPool outer = builder().tag("outer").open();
        MemoryPool middle = builder().upstream(outer).tag("middle").open();
        MemoryPool inner = builder().upstream(middle).tag("inner").open();
        free(inner.allocate(30 * MIB, DEVICE, stream));
        long free = gpu.memory().freeBytes(DEVICE);
        TrimResult trimmed = memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(trimmed.returnedBytes()).isEqualTo(gpu.memory().freeBytes(DEVICE) - free);
        assertThat(trimmed.reservedBytes()).hasValue(0);
        assertThat(trimmed.left()).isEmpty();
    }

    @Test
    void whatFitsTogetherIsNotTrimmed() {
        MemoryPool outer = builder().tag("outer").open();
        MemoryPool inner = builder().upstream(outer).tag("inner").open();
        long block = inner.allocate(30 * MIB, DEVICE, stream);
        free(outer.allocate(30 * MIB, DEVICE, stream));
        assertThat(memory.trim(DEVICE, 64 * MIB, TrimMode.SYNCHRONIZE).returnedBytes())
                .isZero();
        free(block);
    }

    @Test
    void theLimitOfTheUpstreamHolds() {
        MemoryPool outer = builder().limitBytes(32 * MIB).open();
        MemoryPool inner = builder().upstream(outer).open();
        long block = inner.allocate(20 * MIB, DEVICE, stream);
        assertThat(outer.limit().usedBytes()).isBetween(20 * MIB, 32 * MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> inner.allocate(20 * MIB, DEVICE, stream))
                .withStackTraceContaining("limit of " + 32 * MIB);
        free(block);
        inner.close();
        assertThat(outer.limit().usedBytes()).isZero();
    }

    @Test
    void whatIsBuiltOnAnAllocatorKeepsItsMemory() {
        Allocator base = memory.open("caching");
        MemoryPool over = builder().upstream(base).open();
        long block = over.allocate(MIB, DEVICE, stream);
        base.close();
        assertThat(base.isDrained()).isFalse();
        free(block);
        over.close();
        assertThat(base.isDrained()).isTrue();
    }

    @Test
    void sizesGoToDifferentUpstreams() {
        MemoryPool pool = builder().open();
        Allocator direct = memory.open("direct");
        try (DeviceAllocator small = pool.asUpstream();
                DeviceAllocator large = direct.asUpstream()) {
            Allocator binned = memory.open(OpenOptions.made("binned", new Binning(small, large, MIB)));
            long first = binned.allocate(1000, DEVICE, stream);
            assertThat(pool.reservedBytes(DEVICE).orElseThrow()).isPositive();
            long free = gpu.memory().info(DEVICE).freeBytes();
            long second = binned.allocate(64 * MIB, DEVICE, stream);
            assertThat(gpu.memory().info(DEVICE).freeBytes()).isEqualTo(free - 64 * MIB);
            assertThat(memory.ownerOf(first)).isSameAs(binned);
            free(first, second);
            binned.close();
        }
        pool.close();
        assertThat(pool.isDrained()).isTrue();
    }

    @Test
    void aClosedUpstreamRefuses() {
        Allocator base = memory.open("caching");
        DeviceAllocator upstream = base.asUpstream();
        upstream.close();
        upstream.close();
        assertThatIllegalStateException().isThrownBy(() -> upstream.allocate(1, DEVICE, stream));
        base.close();
        assertThatIllegalStateException().isThrownBy(base::asUpstream);
    }

    @Test
    void theLimitsUseIsGivenBackIfTheUpstreamRefuses() {
        MemoryLimit limit = MemoryLimit.of("base", 1 << 30);
        Allocator base = memory.open(OpenOptions.spec("caching").limit(limit));
        try (DeviceAllocator upstream = base.asUpstream()) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> upstream.allocate(512 * MIB, DEVICE, stream));
            assertThat(limit.usedBytes()).isZero();
        }
    }

    @Test
    void largeAlignmentsHoldOverAnUpstream() {
        Allocator direct = memory.open("direct");
        MemoryPool aligned = builder().upstream(direct).byteAlignment(MIB).open();
        long[] blocks = new long[5];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = aligned.allocate(1000, DEVICE, stream);
            assertThat(blocks[i] % MIB).isZero();
        }
        free(blocks);
    }

    @Test
    void anUpstreamOfOtherMemoryIsRefused() {
        try (SimulatedGpu other = SimulatedGpu.builder().build();
                DeviceMemory elsewhere = DeviceMemory.builder(other).open()) {
            Allocator foreign =
                    elsewhere.open(OpenOptions.made("none", new Binning(new Refusing(), new Refusing(), 0)));
            assertThatIllegalArgumentException().isThrownBy(() -> builder().upstream(foreign));
        }
    }

    private record Refusing() implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new DeviceOutOfMemoryException(byteSize, device, "none");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
