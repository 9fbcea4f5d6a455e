package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A handle is freed once, by a destroy or an abort, and nobody uses it from then on.
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class CommunicatorEndTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final WatchedNccl watched = new WatchedNccl(new SimulatedNccl(gpu));
    private final Nccl nccl = new Nccl(watched.api());
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final long stream = gpu.streams().create(0);
    private final long address = gpu.memory().allocate(0, 4096);

    @AfterEach
    void nobodyUsedAFreedHandle() {
        threads.close();
        assertThat(watched.misuses()).isEmpty();
        gpu.close();
    }

    private Communicator rank() {
        return nccl.initAll(0).getFirst();
    }

    private void reduce(Communicator rank) {
        rank.allReduce(address, address, 8, DataType.INT32, ReductionOp.SUM, stream);
    }

    @Test
    void aCommunicatorThatIsBeingDestroyedIsNotAborted() throws Exception {
        Communicator rank = rank();
        WatchedNccl.Held destroy = watched.hold("destroy");
        Future<?> closing = threads.submit(rank::close);
        destroy.awaitEntered();
        rank.abort();
        rank.close();
        assertThat(rank.asyncError()).isEqualTo(NcclResult.SUCCESS);
        destroy.release();
        closing.get();
        assertThat(watched.ends()).containsExactly("destroy");
    }

    @Test
    void aCommunicatorThatIsBeingAbortedIsNotDestroyed() throws Exception {
        Communicator rank = rank();
        WatchedNccl.Held abort = watched.hold("abort");
        Future<?> aborting = threads.submit(rank::abort);
        abort.awaitEntered();
        rank.close();
        rank.abort();
        rank.finish();
        assertThat(rank.asyncError()).isEqualTo(NcclResult.SUCCESS);
        assertThatIllegalStateException().isThrownBy(() -> reduce(rank)).withMessageContaining("aborted");
        abort.release();
        aborting.get();
        assertThat(watched.ends()).containsExactly("abort");
    }

    @Test
    void aQuestionUnderWayIsAnsweredBeforeTheHandleIsFreed() throws Exception {
        for (boolean aborts : new boolean[] {true, false}) {
            Communicator rank = rank();
            WatchedNccl.Held question = watched.hold("asyncError");
            Future<NcclResult> asked = threads.submit(rank::asyncError);
            question.awaitEntered();
            Future<?> ending = threads.submit(aborts ? rank::abort : rank::close);
            while (rank.isOpen()) {
                Thread.onSpinWait();
            }
            assertThat(watched.ends()).isEmpty();
            question.release();
            assertThat(asked.get()).isEqualTo(NcclResult.SUCCESS);
            ending.get();
            assertThat(watched.ends()).containsExactly(aborts ? "abort" : "destroy");
            watched.ends().clear();
        }
    }

    /// The call of a rank whose peers never come returns only once it is aborted.
    @Test
    void aCallThatHangsIsAbortedWhereItIs() throws Exception {
        Communicator rank = rank();
        WatchedNccl.Held call = watched.hold("finish");
        watched.releasedByAbort(call);
        Future<?> hanging = threads.submit(rank::finish);
        call.awaitEntered();
        rank.abort();
        hanging.get();
        assertThat(watched.ends()).containsExactly("abort");
        watched.forgive(); // as NCCL allows: the call was in the library
    }

    @Test
    void finishingWaitsForThePeersCalls() throws Exception {
        try (SimulatedGpu two = SimulatedGpu.builder().devices(2).build()) {
            List<Communicator> ranks = new Nccl(new SimulatedNccl(two)).initAll(0, 1);
            long[] blocks = {filled(two, 0, 1), filled(two, 1, 2)};
            long[] streams = {two.streams().create(0), two.streams().create(1)};
            ranks.get(0).allReduce(blocks[0], blocks[0], 1, DataType.INT8, ReductionOp.SUM, streams[0]);
            FutureTask<?> finishing = new FutureTask<>(ranks.get(0)::finish, true);
            Thread thread = Thread.ofPlatform().start(finishing);
            while (thread.getState() != Thread.State.WAITING) {
                assertThat(finishing.isDone()).isFalse();
                Thread.onSpinWait();
            }
            ranks.get(1).allReduce(blocks[1], blocks[1], 1, DataType.INT8, ReductionOp.SUM, streams[1]);
            finishing.get();
            MemorySegment sum = two.memory().allocateHost(0, 1);
            two.copies().toHost(0, sum, blocks[0], 1, streams[0]);
            two.streams().synchronize(0, streams[0]);
            assertThat(sum.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 3);
            ranks.forEach(Communicator::close);
        }
    }

    private static long filled(SimulatedGpu two, int device, int value) {
        long block = two.memory().allocate(device, 1);
        two.copies().fillBytes(device, block, (byte) value, 1, 0);
        two.devices().synchronize(device);
        return block;
    }

    /// What its calls took is used for those of others once the streams are past them.
    @Test
    void anAbortedCommunicatorLeavesNothing() {
        List<Map<String, Long>> held = new ArrayList<>();
        try (SimulatedGpu two = SimulatedGpu.builder().devices(2).build()) {
            Nccl both = new Nccl(new SimulatedNccl(two));
            long block = filled(two, 0, 1);
            for (int round = 0; round < 3; round++) {
                List<Communicator> ranks = both.initAll(0, 1);
                ranks.getFirst().allReduce(block, block, 1, DataType.INT8, ReductionOp.SUM, 0);
                ranks.forEach(Communicator::abort);
                two.devices().synchronize(0);
                held.add(two.heldObjects());
            }
        }
        assertThat(held).containsOnly(held.getFirst());
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"EVENT_RECORD", "EVENT_QUERY", "EVENT_SYNCHRONIZE"})
    void aDeadContextFailsTheCallsAndLetsTheCommunicatorClose(DriverCall call) {
        Communicator rank = rank();
        reduce(rank);
        gpu.faults().loseContextOn(call, 0, CudaResult.ILLEGAL_ADDRESS);
        if (call != DriverCall.EVENT_SYNCHRONIZE) {
            assertThatThrownBy(() -> reduce(rank)).isInstanceOf(NcclException.class);
        }
        rank.close();
    }

    /// A graph would repeat a call that the ranks of the simulation make once.
    @Test
    void aCapturedStreamTakesNoSimulatedCall() {
        Communicator rank = rank();
        gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
        assertThatThrownBy(() -> reduce(rank))
                .isInstanceOf(NcclException.class)
                .hasMessageContaining("can't be captured");
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, stream));
        reduce(rank);
        rank.close();
    }

    @Test
    void ranksBeyondTheLargestIntAreRefused() {
        UniqueId id = nccl.uniqueId();
        assertThatIllegalArgumentException().isThrownBy(() -> nccl.initRank(id, 1, Integer.MAX_VALUE, 0));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"vmm", "caching:source=vmm,max_bytes=64MiB", "caching:source=vmm,expandable_segments=false"})
    void aPoolThatEndsBesideACallLeavesNoAddresses(String spec) throws Exception {
        Communicator rank = rank();
        Catalog catalog = Catalog.of(List.of(new CachingProvider()), List.of(new VmmSourceProvider()));
        try (DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog).open()) {
            MemoryPool pool = memory.pools().open(spec);
            memory.free(pool.allocate(4096, 0, stream), stream);
            rank.register(pool);
            CountDownLatch inCall = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(1);
            Future<?> calling = threads.submit(() -> {
                rank.enter();
                inCall.countDown();
                done.await();
                rank.leave();
                return null;
            });
            inCall.await();
            pool.close();
            assertThat(gpu.heldObjects()).containsKeys("physical", "reservations");
            done.countDown();
            calling.get();
            rank.close();
            assertThat(gpu.heldObjects()).doesNotContainKeys("physical", "reservations");
        }
    }

    @Test
    void handlesThatCannotBecomeCommunicatorsAreFreed() {
        try (SimulatedGpu two = SimulatedGpu.builder().devices(2).build()) {
            AtomicInteger asked = new AtomicInteger();
            AtomicInteger aborted = new AtomicInteger();
            NcclApi counting = WatchedNccl.before(new SimulatedNccl(two), "abort", () -> aborted.incrementAndGet());
            Nccl failing = new Nccl(WatchedNccl.before(counting, "rank", () -> {
                if (asked.incrementAndGet() % 2 == 0) {
                    throw SimulatedNccl.refused("ncclCommUserRank", NcclResult.SYSTEM_ERROR, "", "");
                }
            }));
            assertThatThrownBy(() -> failing.initAll(0, 1)).isInstanceOf(NcclException.class);
            assertThat(aborted.getAndSet(0)).isEqualTo(2);
            try (Communicator one = failing.initAll(0).getFirst()) {
                assertThatThrownBy(() -> failing.split(List.of(one), new int[1], new int[1]))
                        .isInstanceOf(NcclException.class);
                assertThat(aborted).hasValue(1);
            }
        }
    }

    @Test
    void aSplitEndsIfAPeerIsAborted() throws Exception {
        try (SimulatedGpu two = SimulatedGpu.builder().devices(2).build()) {
            Nccl both = new Nccl(new SimulatedNccl(two));
            List<Communicator> ranks = both.initAll(0, 1);
            AtomicReference<Throwable> failure = new AtomicReference<>();
            int[] zero = {0};
            Thread splitting = Thread.ofPlatform()
                    .uncaughtExceptionHandler((_, thrown) -> failure.set(thrown))
                    .start(() -> both.split(ranks.subList(0, 1), zero, zero));
            while (splitting.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            ranks.get(1).abort();
            splitting.join(10_000);
            assertThat(failure.get()).isInstanceOf(NcclException.class).hasMessageContaining("has failed");
            ranks.forEach(Communicator::close);
        }
    }

    @Test
    void aWindowThatNcclKeepsDoesNotKeepTheCommunicator() {
        Communicator rank = rank();
        Catalog catalog =
                Catalog.of(List.of(new CachingProvider(), new SymmetricProvider()), List.of(new NcclSourceProvider()));
        try (DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog).open();
                MemoryPool pool = memory.pools().open("symmetric:bytes=2MiB")) {
            rank.registerWindow(pool);
            watched.fail("deregisterWindow");
            assertThatThrownBy(rank::close).isInstanceOf(NcclException.class).hasMessageContaining("deregisterWindow");
            rank.close();
            rank.abort();
            assertThat(watched.ends()).containsExactly("destroy");
        }
    }

    @Test
    void whateverRacesTheHandleIsFreedOnceAndNotUsedAfter() throws Exception {
        List<Runnable> chosen = new ArrayList<>();
        Random random = new Random(20);
        for (int round = 0; round < 2000; round++) {
            Communicator rank = rank();
            List<Runnable> calls =
                    List.of(rank::abort, rank::close, rank::finish, rank::asyncError, () -> reduce(rank), rank::abort);
            chosen.clear();
            for (int i = 0; i < 4; i++) {
                chosen.add(calls.get(random.nextInt(calls.size())));
            }
            chosen.add(random.nextBoolean() ? rank::abort : rank::close);
            atOnce(chosen);
            assertThat(watched.ends()).as("round %s", round).hasSize(1);
            assertThat(watched.misuses()).as("round %s", round).isEmpty();
            watched.ends().clear();
        }
    }

    private void atOnce(List<Runnable> calls) throws Exception {
        CyclicBarrier start = new CyclicBarrier(calls.size());
        List<Future<?>> all = new ArrayList<>();
        for (Runnable call : calls) {
            all.add(threads.submit(() -> {
                start.await();
                try {
                    call.run();
                } catch (IllegalStateException ended) {
                    // a call that came too late
                }
                return null;
            }));
        }
        for (Future<?> each : all) {
            each.get();
        }
    }
}
