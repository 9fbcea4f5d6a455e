package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.internal.symmetric.SymmetricAllocator;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks at deterministic offsets, and what is not one of them.
class SymmetricTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(
                    List.of(new CachingProvider(), new SymmetricProvider()),
                    List.of(new NcclSourceProvider(), new VmmSourceProvider(), new PlainProvider())))
            .open();
    private final long[] streams = {gpu.streams().create(0), gpu.streams().create(1)};

    @AfterEach
    void nothingWasMisused() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private static SymmetricAllocator symmetric(MemoryPool pool) {
        return pool.extension(SymmetricAllocator.class).orElseThrow();
    }

    @Test
    void offsetsFollowTheSequenceOfSizesAndFreesWhateverStreamsDo() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB")) {
            List<List<Long>> offsets = new ArrayList<>();
            for (int device = 0; device < 2; device++) {
                offsets.add(offsets(pool, device, new Random(seed), device == 1));
            }
            assertThat(offsets.get(0)).as("seed %d", seed).isEqualTo(offsets.get(1));
        }
    }

    /// Offsets of random allocations and frees.
    ///
    /// @param slow whether work keeps the streams busy meanwhile
    private List<Long> offsets(MemoryPool pool, int device, Random random, boolean slow) {
        long other = gpu.streams().create(device);
        List<Long> live = new ArrayList<>();
        List<Long> offsets = new ArrayList<>();
        long base = symmetric(pool).segment(device).address();
        for (int i = 0; i < 500; i++) {
            long stream = random.nextBoolean() ? streams[device] : other;
            if (live.size() > 20 || (!live.isEmpty() && random.nextInt(3) == 0)) {
                memory.free(live.remove(random.nextInt(live.size())), stream);
            } else {
                long size = 1 + random.nextLong(MIB);
                long block = pool.allocate(size, device, stream);
                if (slow) {
                    gpu.copies().fillBytes(device, block, (byte) i, size, stream);
                }
                live.add(block);
                offsets.add(block - base);
            }
        }
        // Each was used on the stream that it was made for; wait for both, since it is freed on one.
        gpu.devices().synchronize(device);
        live.forEach(block -> memory.free(block, other));
        memory.streamClosing(device, other);
        gpu.streams().destroy(device, other);
        return offsets;
    }

    @Test
    void aBlockThatChangesStreamsIsUsedAfterTheFormerStream() {
        long other = gpu.streams().create(0);
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=4MiB,largest=4MiB")) {
            long block = pool.allocate(4 * MIB, 0, streams[0]);
            gpu.copies().fillBytes(0, block, (byte) 1, 4 * MIB, streams[0]);
            memory.free(block, streams[0]);
            assertThat(pool.allocate(4 * MIB, 0, other)).isEqualTo(block);
            gpu.copies().fillBytes(0, block, (byte) 2, 4 * MIB, other);
            memory.free(block, other);
            memory.streamClosing(0, other);
            gpu.streams().destroy(0, other);
            assertThat(pool.allocate(MIB, 0, streams[0])).isEqualTo(block);
            gpu.copies().fillBytes(0, block, (byte) 3, MIB, streams[0]);
            memory.free(block, streams[0]);
            gpu.devices().synchronize(0);
        }
    }

    @Test
    void largeBlocksComeFromPlainMemory() {
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB,largest=1MiB")) {
            long small = pool.allocate(MIB, 0, streams[0]);
            long large = pool.allocate(MIB + 1, 0, streams[0]);
            var segment = symmetric(pool).segment(0);
            assertThat(small).isBetween(segment.address(), segment.address() + segment.byteSize());
            assertThat(large).matches(at -> at < segment.address() || at >= segment.address() + segment.byteSize());
            assertThat(pool.reservedBytes(0).orElseThrow()).isGreaterThan(64 * MIB);
            memory.free(small, streams[0]);
            memory.free(large, streams[0]);
        }
    }

    @Test
    void aRegistrationCoversBoth() {
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB,largest=1MiB");
                Communicator rank = Nccl.of(memory).initAll(0).getFirst()) {
            long small = pool.allocate(MIB, 0, streams[0]);
            long large = pool.allocate(40 * MIB, 0, streams[0]);
            assertThat(rank.register(pool).registeredBytes())
                    .isEqualTo(pool.reservedBytes(0).orElseThrow());
            memory.free(small, streams[0]);
            memory.free(large, streams[0]);
        }
    }

    @Test
    void whatFindsNoRoomComesFromPlainMemory() {
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=4MiB")) {
            long block = pool.allocate(3 * MIB, 0, streams[0]);
            long other = pool.allocate(2 * MIB, 0, streams[0]);
            long offset = other - symmetric(pool).segment(0).address();
            assertThat(offset < 0 || offset >= 4 * MIB).isTrue();
            memory.free(block, streams[0]);
            memory.free(other, streams[0]);
        }
    }

    @Test
    void anIdleSegmentGoesWithTrimUnlessAWindowLiesOnIt() {
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB");
                Communicator rank = Nccl.of(memory).initAll(0).getFirst()) {
            long block = pool.allocate(MIB, 0, streams[0]);
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .as("a block is live")
                    .isZero();
            memory.free(block, streams[0]);
            gpu.streams().synchronize(0, streams[0]);
            try (Window _ = rank.registerWindow(pool)) {
                assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                        .as("a window lies on it")
                        .isZero();
            }
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isEqualTo(64 * MIB);
            assertThat(pool.reservedBytes(0)).hasValue(0);
            memory.free(pool.allocate(MIB, 0, streams[0]), streams[0]);
        }
    }

    @Test
    void anIdleSegmentStaysWhileAWindowOnItIsRegistered() {
        NcclApi simulated = new SimulatedNccl(gpu);
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB")) {
            Nccl trimming = new Nccl(
                    WatchedNccl.before(simulated, "registerWindows", () -> pool.trim(0, 0, TrimMode.WITHOUT_WAITING)));
            try (Communicator rank = trimming.initAll(0).getFirst();
                    Window _ = rank.registerWindow(pool)) {
                assertThat(pool.reservedBytes(0)).hasValue(64 * MIB);
            }
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isEqualTo(64 * MIB);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"nccl", "vmm", "symmetric:bytes=2MiB"})
    void aClosedPoolIsNotRegistered(String spec) {
        Map<String, Long> held = gpu.heldObjects();
        try (Communicator rank = Nccl.of(memory).initAll(0).getFirst()) {
            MemoryPool pool = memory.pools().open(spec);
            memory.free(pool.allocate(1000, 0, streams[0]), streams[0]);
            pool.close();
            assertThatIllegalStateException().isThrownBy(() -> rank.register(pool));
            if (spec.startsWith("symmetric")) {
                assertThatIllegalStateException().isThrownBy(() -> rank.registerWindow(pool));
            }
            assertThat(gpu.heldObjects()).containsAllEntriesOf(held).doesNotContainKey("physical");
        }
    }

    @Test
    void aWindowThatNcclRefusesLeavesTheSegmentFree() {
        NcclApi simulated = new SimulatedNccl(gpu);
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB")) {
            Nccl refusing = new Nccl(WatchedNccl.before(simulated, "registerWindows", () -> {
                throw SimulatedNccl.refused("registerWindows", NcclResult.SYSTEM_ERROR, "", "");
            }));
            try (Communicator rank = refusing.initAll(0).getFirst()) {
                assertThatThrownBy(() -> rank.registerWindow(pool)).isInstanceOf(NcclException.class);
            }
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isEqualTo(64 * MIB);
        }
    }

    @Test
    void optionsThatCantBeFollowedAreRefused() {
        assertThatThrownBy(() -> memory.pools().open("symmetric:bytes=1MiB"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("2MiB");
        assertThatThrownBy(() -> memory.pools().open("symmetric:source=vmm"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("no ranges");
        assertThatThrownBy(() -> memory.pools().open("symmetric:source=plain"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("can't share");
    }

    /// Else each would wait for all that ever used the segment.
    @Test
    void aBlockWaitsForFewStreamsThoughManyUseTheSegmentInTurns() {
        long[] many = new long[64];
        Arrays.setAll(many, _ -> gpu.streams().create(0));
        try (MemoryPool pool = memory.pools().open("symmetric:bytes=4MiB")) {
            int rounds = 10;
            for (int i = 0; i < rounds * many.length; i++) {
                long stream = many[i % many.length];
                long block = pool.allocate(1 + i % 3 * MIB / 2, 0, stream);
                gpu.copies().fillBytes(0, block, (byte) i, 1 + i % 3 * MIB / 2, stream);
                memory.free(block, stream);
            }
            assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isLessThan(6L * rounds * many.length);
        }
    }

    /// A source whose memory NCCL can't share.
    private static final class PlainProvider implements SegmentSourceProvider {
        @Override
        public int spiVersion() {
            return AllocatorProvider.SPI_VERSION;
        }

        @Override
        public String name() {
            return "plain";
        }

        @Override
        public SegmentSource open(AllocatorContext context) {
            return new RangeSource() {
                @Override
                public Segment acquire(long byteSize, long byteAlignment, int device) {
                    throw new UnsupportedOperationException();
                }

                @Override
                public void release(Segment segment) {
                    throw new UnsupportedOperationException();
                }
            };
        }
    }
}
