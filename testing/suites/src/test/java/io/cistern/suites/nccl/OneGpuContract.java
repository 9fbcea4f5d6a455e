package io.cistern.suites.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverFeature;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.BufferRegistration;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.NcclResult;
import io.cistern.nccl.ReductionOp;
import io.cistern.nccl.Window;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.Patterns;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Tests of NCCL that need one GPU: memory of each source can be read and written, communicators of one
/// rank return each rank its own data, registrations follow the memory of a pool, and objects can be
/// closed in any order.
@Timeout(180)
public abstract class OneGpuContract {
    private static final int DEVICE = 0;
    private static final long MIB = 1L << 20;

    /// NCCL and the driver keep less than this for themselves after the first call.
    private static final long OWN_BYTES = 1L << 30;

    private CudaDriver driver;
    private DeviceMemory memory;
    private Nccl nccl;
    private long stream;

    /// For subclasses.
    protected OneGpuContract() {}

    /// Opens the driver for one test; the suite closes it.
    protected abstract CudaDriver openDriver();

    @BeforeEach
    void open() {
        driver = openDriver();
        memory = Ranks.memory(driver);
        nccl = Nccl.of(memory);
        stream = driver.streams().create(DEVICE);
    }

    @AfterEach
    void close() {
        driver.streams().synchronize(DEVICE, stream);
        memory.streamClosing(DEVICE, stream);
        memory.close();
        driver.streams().destroy(DEVICE, stream);
        driver.close();
    }

    private DeviceBuffer buffer(MemoryPool pool, long byteSize) {
        try (Scope _ = pool.enter()) {
            return DeviceBuffer.allocate(memory, byteSize, DEVICE, stream);
        }
    }

    /// Allocates sizes around the granularity, several blocks at once and again after they were freed.
    private void assertHoldsContents(String spec) {
        long free = driver.memory().freeBytes(DEVICE);
        try (Patterns patterns = new Patterns(driver, DEVICE);
                MemoryPool pool = memory.pools().open(spec)) {
            for (int round = 0; round < 2; round++) {
                List<DeviceBuffer> buffers = new ArrayList<>();
                for (long byteSize : new long[] {4, 4096, MIB, 2 * MIB + 512, 5 * MIB, 40 * MIB}) {
                    DeviceBuffer buffer = buffer(pool, byteSize);
                    patterns.write(buffer.address(), byteSize, buffers.size() + 7 * round, stream);
                    buffers.add(buffer);
                }
                for (int i = 0; i < buffers.size(); i++) {
                    DeviceBuffer buffer = buffers.get(i);
                    patterns.verify(buffer.address(), buffer.byteSize(), i + 7 * round, stream);
                }
                buffers.forEach(DeviceBuffer::close);
            }
            assertThat(patterns.mismatches()).as(spec).isEmpty();
        }
        assertThat(free - driver.memory().freeBytes(DEVICE))
                .as(spec + " gave all back")
                .isLessThan(OWN_BYTES);
    }

    @Test
    void memoryFromNcclHoldsItsContents() {
        assertHoldsContents("nccl");
        assertHoldsContents("caching:source=nccl,splits=false");
    }

    @Test
    void physicalMemoryHoldsItsContentsInPagesAndInSegments() {
        assertHoldsContents("vmm");
        assertHoldsContents("vmm:alignment=16MiB");
        assertHoldsContents("caching:source=vmm,expandable_segments=false");
        assertHoldsContents("caching:source=vmm,splits=false");
    }

    @Test
    void hostMemoryOfANumaNodeHoldsItsContents() {
        assumeTrue(
                driver.capabilities()
                        .devices()
                        .get(DEVICE)
                        .supports(DriverFeature.HOST_NUMA_MEMORY)
                        .supported(),
                "this device can't use memory of host NUMA nodes");
        assertHoldsContents("vmm:location=host_numa");
        assertHoldsContents("caching:source=\"vmm:location=host_numa\",expandable_segments=false");
    }

    @Test
    void symmetricMemoryHoldsItsContentsBelowAndAboveTheCrossover() {
        assertHoldsContents("symmetric:bytes=64MiB");
    }

    @Test
    void aCommunicatorOfOneRankGivesItsOwn() {
        try (Ranks one = Ranks.onDevices(openDriver(), DEVICE);
                MemoryPool pool = one.memory.pools().open("nccl");
                CollectiveChecks checks = new CollectiveChecks(one, pool)) {
            assertThat(one.all.getFirst().rankCount()).isOne();
            one.all.getFirst().register(pool);
            checks.reductions();
            checks.moves();
            checks.sums(MIB);
            checks.nothingWentWrong();
        }
    }

    @Test
    void aRegistrationFollowsTheMemoryOfAPool() {
        for (String spec : List.of("nccl", "vmm", "caching:source=vmm,expandable_segments=false")) {
            try (Communicator rank = nccl.initAll(DEVICE).getFirst();
                    MemoryPool pool = memory.pools().open(spec)) {
                buffer(pool, MIB).close();
                BufferRegistration registration = rank.register(pool);
                assertRegistered(spec, registration, pool);
                buffer(pool, 50 * MIB).close();
                assertRegistered(spec, registration, pool);
                assertThat(rank.register(pool)).isSameAs(registration);
                driver.streams().synchronize(DEVICE, stream);
                pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                assertThat(registration.registeredBytes()).as(spec).isZero();
                assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
                buffer(pool, 3 * MIB).close();
                assertRegistered(spec, registration, pool);
            }
        }
    }

    /// Checks that the whole pool is registered, unless NCCL says that it does not use registrations.
    private static void assertRegistered(String spec, BufferRegistration registration, MemoryPool pool) {
        if (registration.refusals().isEmpty()) {
            assertThat(registration.registeredBytes())
                    .as(spec)
                    .isEqualTo(pool.reservedBytes(DEVICE).orElseThrow());
        } else {
            assertThat(registration.refusals()).as(spec).allMatch(reason -> reason.contains("NCCL does not use"));
        }
    }

    @Test
    void poolCommunicatorAndRegistrationEndInAnyOrder() {
        for (String spec : List.of("nccl", "vmm")) {
            for (int order = 0; order < 6; order++) {
                Communicator one = nccl.initAll(DEVICE).getFirst();
                Communicator other = nccl.initAll(DEVICE).getFirst();
                MemoryPool pool = memory.pools().open(spec);
                buffer(pool, MIB).close();
                BufferRegistration first = one.register(pool);
                other.register(pool);
                List<AutoCloseable> all = List.of(pool, one, first);
                int third = order / 2;
                int next = order % 2;
                close(all.get(third));
                close(all.get((third + 1 + next) % 3));
                close(all.get((third + 2 - next) % 3));
                close(other);
                assertThat(pool.isDrained()).isTrue();
            }
        }
    }

    private static void close(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aWindowLiesOnSymmetricMemoryAlone() {
        try (Communicator rank = nccl.initAll(DEVICE).getFirst();
                MemoryPool plain = memory.pools().open("nccl");
                MemoryPool symmetric = memory.pools().open("symmetric:bytes=64MiB,largest=8MiB")) {
            assertThatThrownBy(() -> rank.registerWindow(plain))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining("symmetric");
            DeviceBuffer first = buffer(symmetric, 1000);
            DeviceBuffer second = buffer(symmetric, MIB);
            DeviceBuffer large = buffer(symmetric, 9 * MIB);
            assumeWindows(() -> rank.registerWindow(symmetric).close());
            try (Window window = rank.registerWindow(symmetric)) {
                assertThat(window.byteSize()).isEqualTo(64 * MIB);
                assertThat(window.offsetOf(first)).isZero();
                assertThat(window.offsetOf(second)).isEqualTo(1024);
                assertThat(window.contains(large)).isFalse();
                rank.allReduce(second, DataType.FLOAT32, ReductionOp.SUM, stream);
                driver.streams().synchronize(DEVICE, stream);
            }
            List.of(first, second, large).forEach(DeviceBuffer::close);
        }
    }

    /// Skips the test if the machine has no windows; the reason must name NCCL.
    private static void assumeWindows(Runnable trial) {
        try {
            trial.run();
        } catch (UnsupportedOperationException reason) {
            assertThat(reason).hasMessageContaining("NCCL");
            assumeTrue(false, reason.getMessage());
        }
    }

    @Test
    void memoryUnderAWindowStaysUntilTheWindowIsClosed() {
        Communicator rank = nccl.initAll(DEVICE).getFirst();
        MemoryPool pool = memory.pools().open("symmetric:bytes=64MiB");
        buffer(pool, MIB).close();
        assumeWindows(() -> rank.registerWindow(pool).close());
        Window window = rank.registerWindow(pool);
        long free = driver.memory().freeBytes(DEVICE);
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        assertThat(driver.memory().freeBytes(DEVICE)).isLessThan(free + 64 * MIB);
        window.close();
        assertThat(driver.memory().freeBytes(DEVICE)).isGreaterThanOrEqualTo(free + 64 * MIB);
        rank.close();
    }

    @Test
    void aCommunicatorIsFinishedClosedAndAborted() {
        Communicator rank = nccl.initAll(DEVICE).getFirst();
        assertThat(rank.asyncError()).isEqualTo(NcclResult.SUCCESS);
        rank.finish();
        rank.finish();
        rank.close();
        rank.close();
        assertThatThrownBy(() -> rank.allReduce(0, 0, 0, DataType.INT8, ReductionOp.SUM, stream))
                .isInstanceOf(IllegalStateException.class);
        Communicator other = nccl.initAll(DEVICE).getFirst();
        other.abort();
        other.abort();
        other.close();
    }

    @Test
    void buffersThatDoNotFitAreRefusedBeforeNcclIsCalled() {
        try (Communicator rank = nccl.initAll(DEVICE).getFirst();
                MemoryPool pool = memory.pools().open("nccl");
                DeviceBuffer odd = buffer(pool, 10);
                DeviceBuffer even = buffer(pool, 16)) {
            assertThatThrownBy(() -> rank.allReduce(odd, DataType.FLOAT32, ReductionOp.SUM, stream))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("not a multiple of 4 bytes");
            assertThatThrownBy(() -> rank.allReduce(odd, even, DataType.INT8, ReductionOp.SUM, stream))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("does not match");
            assertThatThrownBy(() -> rank.send(even, DataType.INT8, 1, stream))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("rank 1 does not exist");
        }
    }
}
