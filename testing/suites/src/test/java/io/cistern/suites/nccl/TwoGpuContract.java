package io.cistern.suites.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.nccl.BufferRegistration;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.NcclResult;
import io.cistern.nccl.ReductionOp;
import io.cistern.nccl.UniqueId;
import io.cistern.nccl.Window;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Tests of NCCL that need two GPUs in one process: every collective gives the right data for every type and
/// reduction, from registered memory of every source and size; and ranks can end, split and fail.
@Timeout(300)
public abstract class TwoGpuContract {
    private static final long KIB = 1L << 10;
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;

    private Ranks ranks;

    /// For subclasses.
    protected TwoGpuContract() {}

    /// Opens the driver for one test; the suite closes it.
    protected abstract CudaDriver openDriver();

    @BeforeEach
    void open() {
        CudaDriver driver = openDriver();
        if (driver.devices().count() < 2) {
            driver.close();
            assumeTrue(false, "needs two devices, there is one");
        }
        ranks = Ranks.onDevices(driver, 0, 1);
    }

    @AfterEach
    void close() {
        if (ranks != null) {
            ranks.close();
        }
    }

    private boolean simulated() {
        return ranks.driver.simulated();
    }

    private DeviceBuffer buffer(MemoryPool pool, int rank, long byteSize) {
        try (Scope _ = pool.enter()) {
            return DeviceBuffer.allocate(ranks.memory, byteSize, rank, ranks.streams.get(rank));
        }
    }

    private void registerWithAll(MemoryPool pool) {
        ranks.all.forEach(rank -> rank.register(pool));
    }

    @Test
    void everyReductionOfEveryTypeIsRight() {
        try (MemoryPool pool = ranks.memory.pools().open("nccl");
                CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
            registerWithAll(pool);
            checks.reductions();
            checks.nothingWentWrong();
        }
    }

    @Test
    void everyMoveIsRightFromEverySource() {
        for (String spec : List.of(
                "nccl", "vmm", "caching:source=vmm,splits=false", "vmm:location=host_numa", "symmetric:bytes=64MiB")) {
            try (MemoryPool pool = ranks.memory.pools().open(spec);
                    CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
                registerWithAll(pool);
                checks.moves();
                checks.nothingWentWrong();
            }
        }
    }

    @Test
    void sumsOfEverySizeAreRightPlainRegisteredAndInAWindow() {
        long most = simulated() ? MIB : GIB;
        for (String spec : List.of("caching:source=vmm", "nccl", "symmetric:largest=4GiB,bytes=" + 4 * most)) {
            List<Window> windows = List.of();
            try (MemoryPool pool = ranks.memory.pools().open(spec);
                    CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
                if (spec.equals("nccl")) {
                    registerWithAll(pool);
                } else if (spec.startsWith("symmetric")) {
                    windows = windows(pool);
                }
                for (long byteSize = 8; byteSize <= most; byteSize *= byteSize == 8 ? 128 : 32) {
                    checks.sums(byteSize);
                }
                checks.sums(most);
                checks.nothingWentWrong();
            }
            windows.forEach(Window::close);
        }
    }

    /// Registers windows; returns an empty list if the machine has none.
    private List<Window> windows(MemoryPool pool) {
        try {
            return ranks.nccl.registerWindows(ranks.all, pool);
        } catch (UnsupportedOperationException reason) {
            assertThat(reason).hasMessageContaining("NCCL");
            return List.of();
        }
    }

    @Test
    void aGatherOverHostMemoryIsRight() {
        try (MemoryPool pool = ranks.memory.pools().open("vmm:location=host_numa");
                CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
            registerWithAll(pool);
            checks.allGather();
        }
    }

    @Test
    void aRegisteredBufferOfSixteenGibibytesIsSummed() {
        assumeFalse(simulated(), "the simulation copies through the host");
        try (MemoryPool pool = ranks.memory.pools().open("nccl");
                DeviceBuffer first = buffer(pool, 0, 16 * GIB);
                DeviceBuffer second = buffer(pool, 1, 16 * GIB)) {
            registerWithAll(pool);
            List<DeviceBuffer> buffers = List.of(first, second);
            for (int i = 0; i < 2; i++) {
                Transfers.fill(ranks.driver, buffers.get(i), 1 + i, ranks.streams.get(i));
            }
            ranks.together((rank, i) ->
                    rank.allReduce(buffers.get(i), DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i)));
            for (int i = 0; i < 2; i++) {
                assertThat(Transfers.countOther(ranks.driver, buffers.get(i), 3, ranks.streams.get(i)))
                        .isZero();
            }
        }
    }

    @Test
    void eachCommunicatorHasTheSegmentsOfItsDevice() {
        try (MemoryPool pool = ranks.memory.pools().open("nccl")) {
            List<BufferRegistration> registrations =
                    ranks.all.stream().map(rank -> rank.register(pool)).toList();
            DeviceBuffer first = buffer(pool, 0, 50 * MIB);
            DeviceBuffer second = buffer(pool, 1, 70 * MIB);
            for (int i = 0; i < 2; i++) {
                BufferRegistration registration = registrations.get(i);
                if (registration.refusals().isEmpty()) {
                    assertThat(registration.registeredBytes())
                            .isEqualTo(pool.reservedBytes(i).orElseThrow());
                }
            }
            first.close();
            second.close();
        }
    }

    @Test
    void theSameAllocationsHaveTheSameOffsetsOnAllRanks() {
        try (MemoryPool pool = ranks.memory.pools().open("symmetric:bytes=64MiB")) {
            List<Window> windows = windows(pool);
            assumeFalse(windows.isEmpty(), "no windows here");
            List<DeviceBuffer> kept = new ArrayList<>();
            for (int size = 100; size < 100_000; size = size * 3 / 2) {
                DeviceBuffer gone0 = buffer(pool, 0, size);
                DeviceBuffer gone1 = buffer(pool, 1, size);
                DeviceBuffer[] both = {buffer(pool, 0, 2L * size), buffer(pool, 1, 2L * size)};
                gone1.close();
                gone0.close();
                assertThat(windows.get(0).offsetOf(both[0]))
                        .isEqualTo(windows.get(1).offsetOf(both[1]));
                kept.addAll(List.of(both));
            }
            kept.forEach(DeviceBuffer::close);
            windows.forEach(Window::close);
        }
    }

    @Test
    void aBufferThatIsClosedAtOnceIsKeptUntilTheStreamHasPassed() {
        try (MemoryPool pool = ranks.memory.pools().open("caching:source=nccl,thread_caches=false")) {
            long own0 = ranks.driver.streams().create(0);
            long own1 = ranks.driver.streams().create(1);
            long[] owns = {own0, own1};
            DeviceBuffer[] sums = {buffer(pool, 0, MIB), buffer(pool, 1, MIB)};
            DeviceBuffer[] given = new DeviceBuffer[2];
            for (int i = 0; i < 2; i++) {
                try (Scope _ = pool.enter()) {
                    given[i] = DeviceBuffer.allocate(ranks.memory, MIB, i, owns[i]);
                }
                Transfers.fill(ranks.driver, given[i], 1 + i, owns[i]);
                ranks.driver.streams().synchronize(i, owns[i]);
            }
            ranks.together((rank, i) ->
                    rank.allReduce(given[i], sums[i], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i)));
            for (int i = 0; i < 2; i++) {
                given[i].close();
                try (Scope _ = pool.enter();
                        DeviceBuffer next = DeviceBuffer.allocate(ranks.memory, MIB, i, owns[i])) {
                    Transfers.fill(ranks.driver, next, 100, owns[i]);
                }
            }
            for (int i = 0; i < 2; i++) {
                assertThat(Transfers.countOther(ranks.driver, sums[i], 3, ranks.streams.get(i)))
                        .isZero();
                sums[i].close();
                ranks.driver.streams().synchronize(i, owns[i]);
                ranks.memory.streamClosing(i, owns[i]);
                ranks.driver.streams().destroy(i, owns[i]);
            }
        }
    }

    @Test
    void ranksMeetByAnIdFromThreadsOfTheirOwn() throws Exception {
        UniqueId id = UniqueId.of(ranks.nccl.uniqueId().toBytes());
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Communicator>> made = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                int rank = i;
                Callable<Communicator> init = () -> ranks.nccl.initRank(id, 2, rank, rank);
                made.add(threads.submit(init));
            }
            List<Communicator> pair = List.of(made.get(0).get(), made.get(1).get());
            assertThat(pair.get(1).rank()).isOne();
            assertThat(pair.get(0).rankCount()).isEqualTo(2);
            List<Future<?>> closed = pair.stream()
                    .<Future<?>>map(rank -> threads.submit(rank::close))
                    .toList();
            for (Future<?> each : closed) {
                each.get();
            }
        }
    }

    @Test
    void aSplitMakesSmallerCommunicators() {
        List<Optional<Communicator>> apart = ranks.nccl.split(ranks.all, new int[] {0, 1}, new int[] {0, 0});
        assertThat(apart).allMatch(rank -> rank.orElseThrow().rankCount() == 1);
        List<Optional<Communicator>> turned = ranks.nccl.split(ranks.all, new int[] {5, 5}, new int[] {1, 0});
        assertThat(turned.getFirst().orElseThrow().rank()).isOne();
        List<Optional<Communicator>> half = ranks.nccl.split(ranks.all, new int[] {-1, 0}, new int[] {0, 0});
        assertThat(half.getFirst()).isEmpty();
        for (List<Optional<Communicator>> made : List.of(apart, turned, half)) {
            made.forEach(rank -> rank.ifPresent(Communicator::close));
        }
    }

    @Test
    void abortLetsAStreamGoThatWaitsForARankWhichNeverCalls() {
        try (MemoryPool pool = ranks.memory.pools().open("nccl");
                CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
            checks.sums(KIB); // connected, so that the next call doesn't wait for the other rank on the host
            List<Communicator> pair = ranks.nccl.initAll(0, 1);
            DeviceBuffer[] warm = {buffer(pool, 0, KIB), buffer(pool, 1, KIB)};
            ranks.nccl.group(() -> {
                for (int i = 0; i < 2; i++) {
                    pair.get(i).allReduce(warm[i], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i));
                }
            });
            ranks.synchronize();
            pair.getFirst().allReduce(warm[0], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.getFirst());
            assertThat(ranks.driver.streams().isIdle(0, ranks.streams.getFirst()))
                    .isFalse();
            pair.forEach(Communicator::abort);
            ranks.synchronize();
            assertThat(pair.getFirst().asyncError()).isEqualTo(NcclResult.SUCCESS);
            warm[0].close();
            warm[1].close();
        }
    }

    @Test
    void aBufferOfAnotherDeviceIsRefused() {
        try (MemoryPool pool = ranks.memory.pools().open("nccl");
                DeviceBuffer other = buffer(pool, 1, KIB)) {
            assertThatThrownBy(() -> ranks.all
                            .getFirst()
                            .allReduce(other, DataType.INT8, ReductionOp.SUM, ranks.streams.getFirst()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("a device other than");
        }
    }

    @Test
    void aGroupThatThrowsCallsNothing() {
        try (MemoryPool pool = ranks.memory.pools().open("nccl");
                CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
            assertThatThrownBy(() -> ranks.nccl.group(() -> {
                        ranks.all.getFirst().allReduce(1, 1, 1, DataType.INT8, ReductionOp.SUM, 0);
                        throw new IllegalStateException("the block's own");
                    }))
                    .hasMessage("the block's own");
            checks.sums(KIB);
        }
    }
}
