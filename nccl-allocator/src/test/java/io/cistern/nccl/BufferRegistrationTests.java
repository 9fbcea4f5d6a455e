package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// In which order segments are made, registered, deregistered and freed, whatever fails and whoever ends first. Memory
/// is from the fake `ncclMemAlloc`.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class BufferRegistrationTests {
    private static final long MIB = 1L << 20;

    private FakeNccl fake;
    private SimulatedGpu gpu;
    private DeviceMemory memory;
    private NcclApi api;
    private Nccl nccl;
    private long stream;

    @BeforeAll
    void compile(@TempDir Path folder) {
        fake = new FakeNccl(folder);
    }

    @BeforeEach
    void open() {
        gpu = SimulatedGpu.builder().devices(2).build();
        memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(new CachingProvider()), List.of()))
                .open();
        api = new NativeNccl(fake.library(), gpu.devices());
        nccl = new Nccl(api);
        stream = gpu.streams().create(0);
    }

    @AfterEach
    void allMemoryIsBack() {
        fake.fail("", 0);
        memory.close();
        assertThat(fake.allocations()).isZero();
        gpu.close();
        fake.calls();
    }

    private MemoryPool pool() {
        return MemoryPool.builder(memory)
                .spec("caching:splits=false")
                .source(new NcclSource(api, gpu))
                .open();
    }

    private Communicator rank() {
        Communicator rank = nccl.initAll(0).getFirst();
        fake.calls();
        return rank;
    }

    private void allocateAndFree(MemoryPool pool, long byteSize) {
        memory.free(pool.allocate(byteSize, 0, stream), stream);
    }

    private void trim(MemoryPool pool) {
        gpu.streams().synchronize(0, stream);
        pool.trim(0, 0, TrimMode.WITHOUT_WAITING);
    }

    @Test
    void presentSegmentsAreRegisteredAtOnceAndLaterOnesAsTheyAppear() {
        try (Communicator rank = rank();
                MemoryPool pool = pool()) {
            long first = pool.allocate(2 * MIB, 0, stream);
            BufferRegistration registration = rank.register(pool);
            long second = pool.allocate(6 * MIB, 0, stream);
            assertThat(registration.registeredSegments()).isEqualTo(2);
            assertThat(registration.registeredBytes()).isEqualTo(8 * MIB);
            memory.free(first, stream);
            memory.free(second, stream);
            trim(pool);
            assertThat(fake.calls())
                    .startsWith(
                            "ncclMemAlloc(2097152)",
                            "ncclCommRegister(0, 2097152)",
                            "ncclMemAlloc(6291456)",
                            "ncclCommRegister(0, 6291456)")
                    .endsWith("ncclCommDeregister(0)", "ncclMemFree()", "ncclCommDeregister(0)", "ncclMemFree()");
        }
    }

    @Test
    void segmentsOfOtherDevicesAreNotTheCommunicators() {
        try (Communicator rank = rank();
                MemoryPool pool = pool()) {
            BufferRegistration registration = rank.register(pool);
            long other = gpu.streams().create(1);
            memory.free(pool.allocate(2 * MIB, 1, other), other);
            assertThat(registration.registeredBytes()).isZero();
            assertThat(fake.calls()).containsExactly("ncclMemAlloc(2097152)");
        }
    }

    @Test
    void aFailedRegistrationIsRolledBackAndCanBeTriedAgain() {
        try (Communicator rank = rank();
                MemoryPool pool = pool()) {
            allocateAndFree(pool, 2 * MIB);
            allocateAndFree(pool, 40 * MIB);
            fake.calls();
            fake.failAfter(1, "ncclCommRegister", 2);
            assertThatThrownBy(() -> rank.register(pool)).isInstanceOf(NcclException.class);
            assertThat(fake.calls())
                    .containsExactlyInAnyOrder(
                            "ncclCommRegister(0, 2097152)", "ncclCommRegister(0, 41943040)", "ncclCommDeregister(0)");
            trim(pool);
            assertThat(pool.reservedBytes(0)).hasValue(0);
            fake.fail("", 0);
            assertThat(rank.register(pool).registeredBytes()).isZero();
        }
    }

    @Test
    void aLaterSegmentThatNcclRefusesIsUsedUnregistered() {
        try (Communicator rank = rank();
                MemoryPool pool = pool()) {
            BufferRegistration registration = rank.register(pool);
            fake.fail("ncclCommRegister", 3);
            allocateAndFree(pool, 2 * MIB);
            assertThat(registration.registeredBytes()).isZero();
            assertThat(registration.refusals()).singleElement().asString().contains("ncclInternalError (3)");
            fake.calls();
            rank.send(fakeAddress(), 0, DataType.INT8, 0, stream);
            assertThat(fake.calls()).as("not tried again").containsExactly("ncclSend(0, 0, 0, 0, " + hex() + ")");
            trim(pool);
            assertThat(pool.reservedBytes(0)).hasValue(0);
        }
    }

    private static long fakeAddress() {
        return 1 << 20;
    }

    private String hex() {
        return Long.toHexString(stream);
    }

    @Test
    void whereNcclMakesNoUseOfRegisteredMemoryThatIsSaid(@TempDir Path folder) {
        FakeNccl without = new FakeNccl(folder, "-DNULL_REGISTRATION");
        Nccl other = new Nccl(new NativeNccl(without.library(), gpu.devices()));
        try (Communicator rank = other.initAll(0).getFirst();
                MemoryPool pool = pool()) {
            allocateAndFree(pool, 2 * MIB);
            assertThat(rank.register(pool).refusals())
                    .singleElement()
                    .asString()
                    .contains("NCCL_LOCAL_REGISTER=0");
        }
    }

    @Test
    void severalCommunicatorsHaveOnePool() {
        Communicator one = rank();
        Communicator other = rank();
        try (MemoryPool pool = pool()) {
            one.register(pool);
            other.register(pool);
            allocateAndFree(pool, 2 * MIB);
            assertThat(fake.calls())
                    .containsExactly(
                            "ncclMemAlloc(2097152)", "ncclCommRegister(0, 2097152)", "ncclCommRegister(0, 2097152)");
            one.close();
            assertThat(fake.calls()).containsExactly("ncclCommDeregister(0)", "ncclCommDestroy(0)");
            trim(pool);
            assertThat(fake.calls()).containsExactly("ncclCommDeregister(0)", "ncclMemFree()");
            other.close();
        }
    }

    @Test
    void aClosedRegistrationHasNothingLeftAndFollowsNothing() {
        try (Communicator rank = rank();
                MemoryPool pool = pool()) {
            allocateAndFree(pool, 2 * MIB);
            BufferRegistration registration = rank.register(pool);
            registration.close();
            registration.close();
            fake.calls();
            allocateAndFree(pool, 40 * MIB);
            assertThat(fake.calls()).containsExactly("ncclMemAlloc(41943040)");
            assertThat(rank.register(pool)).isNotSameAs(registration);
        }
    }

    @Test
    void anAbortedCommunicatorTakesNoCallsAndItsRegistrationsAreGone() {
        Communicator rank = rank();
        try (MemoryPool pool = pool()) {
            allocateAndFree(pool, 2 * MIB);
            BufferRegistration registration = rank.register(pool);
            fake.calls();
            rank.abort();
            assertThat(registration.registeredBytes()).isZero();
            trim(pool);
            assertThat(fake.calls()).containsExactly("ncclCommAbort(0)", "ncclMemFree()");
        }
    }

    /// What a call that waits for other ranks does: it keeps the communicator. Nobody waits for it.
    @Test
    void aCommunicatorInACallIsNotWaitedFor() throws InterruptedException {
        Communicator rank = rank();
        MemoryPool pool = pool();
        allocateAndFree(pool, 2 * MIB);
        BufferRegistration registration = rank.register(pool);
        CountDownLatch inCall = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread caller = Thread.ofPlatform().start(() -> {
            rank.enter();
            inCall.countDown();
            await(done);
            rank.leave();
        });
        await(inCall);
        fake.calls();
        allocateAndFree(pool, 40 * MIB);
        assertThat(fake.calls()).as("registered later").containsExactly("ncclMemAlloc(41943040)");
        trim(pool);
        assertThat(pool.reservedBytes(0)).as("the registered one stays").hasValue(2 * MIB);
        assertThat(fake.calls()).containsExactly("ncclMemFree()");
        allocateAndFree(pool, 60 * MIB);
        done.countDown();
        caller.join();
        rank.enter();
        rank.leave();
        assertThat(registration.registeredBytes()).as("with the next call").isEqualTo(62 * MIB);
        pool.close();
        rank.close();
    }

    @Test
    void aSegmentStaysWhileItIsBeingRegistered() throws Exception {
        WatchedNccl watched = new WatchedNccl(api);
        WatchedNccl.Held registering = watched.hold("register");
        try (Communicator rank = new Nccl(watched.api()).initAll(0).getFirst();
                MemoryPool pool = pool()) {
            allocateAndFree(pool, 2 * MIB);
            FutureTask<BufferRegistration> task = new FutureTask<>(() -> rank.register(pool));
            Thread.ofPlatform().start(task);
            registering.awaitEntered();
            trim(pool);
            assertThat(pool.reservedBytes(0)).hasValue(2 * MIB);
            registering.release();
            assertThat(task.get().registeredBytes()).isEqualTo(2 * MIB);
            trim(pool);
            assertThat(pool.reservedBytes(0)).hasValue(0);
        }
    }

    @Test
    void closedPoolsAreForgotten() throws Exception {
        try (Communicator rank = rank()) {
            List<WeakReference<MemoryPool>> pools = List.of(usedAndClosed(rank, 0), usedAndClosed(rank, 2 * MIB));
            for (int tries = 0; tries < 100 && pools.stream().anyMatch(pool -> pool.get() != null); tries++) {
                System.gc();
                Thread.sleep(10);
            }
            assertThat(pools).allMatch(pool -> pool.get() == null);
        }
    }

    private WeakReference<MemoryPool> usedAndClosed(Communicator rank, long byteSize) {
        MemoryPool pool = pool();
        allocateAndFree(pool, byteSize);
        rank.register(pool);
        pool.close();
        return new WeakReference<>(pool);
    }

    @Test
    void aPoolThatEndsBesideACallIsFreedAfterIt() throws InterruptedException {
        Communicator rank = rank();
        MemoryPool pool = pool();
        allocateAndFree(pool, 2 * MIB);
        rank.register(pool);
        CountDownLatch inCall = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread caller = Thread.ofPlatform().start(() -> {
            rank.enter();
            inCall.countDown();
            await(done);
            rank.leave();
        });
        await(inCall);
        fake.calls();
        gpu.streams().synchronize(0, stream);
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        assertThat(fake.calls()).as("still registered").isEmpty();
        assertThat(fake.allocations()).isOne();
        done.countDown();
        caller.join();
        rank.close();
        assertThat(fake.calls()).containsExactly("ncclCommDeregister(0)", "ncclMemFree()", "ncclCommDestroy(0)");
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void memoryThatNcclCantShareIsRefusedWithAReason() {
        try (Communicator rank = rank();
                MemoryPool pool = MemoryPool.builder(memory)
                        .functions((_, _) -> 0, (_, _, _) -> {})
                        .open()) {
            assertThatThrownBy(() -> rank.register(pool))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining("nccl, vmm");
        }
    }
}
