package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Reason;
import io.cistern.spi.catalog.Catalog;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Registered pools that sleep: what a communicator knows is deregistered before its memory goes, and registered
/// when it is back.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class SleepTests {
    private static final long MIB = 1L << 20;

    private FakeNccl fake;
    private SimulatedGpu gpu;
    private DeviceMemory memory;
    private Nccl nccl;
    private long stream;

    @BeforeAll
    void compile(@TempDir Path folder) {
        fake = new FakeNccl(folder);
    }

    @BeforeEach
    void open() {
        gpu = SimulatedGpu.builder().capacityBytes(256 * MIB).build();
        memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(
                        List.of(new CachingProvider()), List.of(new VmmSourceProvider(), new NcclSourceProvider())))
                .open();
        nccl = new Nccl(new NativeNccl(fake.library(), gpu.devices()));
        stream = gpu.streams().create(0);
        fake.calls();
    }

    @AfterEach
    void allMemoryIsBack() {
        memory.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(256 * MIB);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
        fake.calls();
    }

    private MemoryPool pool() {
        return MemoryPool.builder(memory)
                .spec("caching:source=vmm,page_size=2MiB")
                .open();
    }

    @Test
    void registrationsAreUndoneAndRedone() {
        try (Communicator rank = nccl.initAll(0).getFirst();
                MemoryPool pool = pool()) {
            long block = pool.allocate(6 * MIB, 0, stream);
            BufferRegistration registration = rank.register(pool);
            assertThat(registration.registeredBytes()).isEqualTo(6 * MIB);
            fake.calls();

            pool.sleep(SleepMode.KEEP);
            assertThat(fake.calls()).hasSize(3).containsOnly("ncclCommDeregister(0)");
            assertThat(registration.registeredBytes()).isZero();
            assertThat(pool.reservedBytes(0)).hasValue(0);

            pool.wake();
            assertThat(fake.calls()).hasSize(3).containsOnly("ncclCommRegister(0, 2097152)");
            assertThat(registration.registeredBytes()).isEqualTo(6 * MIB);
            memory.free(block, stream);
        }
    }

    @Test
    void aPoolThatIsRegisteredInItsSleepIsRegisteredWhenItWakes() {
        try (Communicator rank = nccl.initAll(0).getFirst();
                MemoryPool pool = pool()) {
            long block = pool.allocate(4 * MIB, 0, stream);
            pool.sleep(SleepMode.DROP);
            BufferRegistration registration = rank.register(pool);
            assertThat(registration.registeredBytes()).isZero();
            pool.wake();
            assertThat(registration.registeredBytes()).isEqualTo(4 * MIB);
            memory.free(block, stream);
        }
    }

    @Test
    void whatACommunicatorInACallKnowsStaysAndIsTold() throws InterruptedException {
        try (Communicator rank = nccl.initAll(0).getFirst();
                MemoryPool pool = pool()) {
            long block = pool.allocate(4 * MIB, 0, stream);
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
            TrimResult slept = pool.sleep(SleepMode.KEEP);
            assertThat(slept.leftBytes(Reason.PINNED)).isEqualTo(4 * MIB);
            assertThat(pool.reservedBytes(0)).hasValue(4 * MIB);
            done.countDown();
            caller.join();
            assertThat(pool.sleep(SleepMode.KEEP).returnedBytes()).isEqualTo(4 * MIB);
            pool.wake();
            assertThat(registration.registeredBytes()).isEqualTo(4 * MIB);
            memory.free(block, stream);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aSleepingPoolAndItsCommunicatorEndInAnyOrder() {
        Communicator rank = nccl.initAll(0).getFirst();
        MemoryPool pool = pool();
        long block = pool.allocate(4 * MIB, 0, stream);
        rank.register(pool);
        pool.sleep(SleepMode.KEEP);
        rank.close();
        pool.wake();
        pool.sleep(SleepMode.KEEP);
        memory.free(block, stream);
        pool.close();
        assertThat(pool.isDrained()).isTrue();
    }

    @Test
    void rangesOfNcclHaveTheirAddressesWithTheirMemory() {
        try (MemoryPool pool = MemoryPool.builder(memory)
                .source(new NcclSource(new NativeNccl(fake.library(), gpu.devices()), gpu))
                .open()) {
            assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("whole segments");
        }
    }
}
