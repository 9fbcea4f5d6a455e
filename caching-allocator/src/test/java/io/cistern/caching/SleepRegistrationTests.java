package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Reason;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/// Who has registered a pool's memory hears that it goes and comes, and may keep some of it where it is.
final class SleepRegistrationTests extends PoolFixture {
    private static final long PAGE = 2 * MIB;

    /// A source whose memory is registered where it is mapped.
    private static final class RegisteredPages implements PageSource {
        private final CudaDriver driver;
        private final Map<Long, Long> registered = new TreeMap<>();
        private final Set<Long> inUse = new TreeSet<>();

        RegisteredPages(CudaDriver driver) {
            this.driver = driver;
        }

        @Override
        public PageTraits traits(int device) {
            return new PageTraits(PAGE, "device", "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            return driver.virtualMemory().create(byteSize, PhysicalMemory.onDevice(device));
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            assertThat(registered.put(address, handle)).as("mapped twice").isNull();
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            if (inUse.contains(address)) {
                return false;
            }
            assertThat(registered.remove(address)).as("unmapped twice").isNotNull();
            return true;
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            assertThat(registered).as("registered handles").doesNotContainValue(handle);
            driver.virtualMemory().release(device, handle);
        }
    }

    private final RegisteredPages source = new RegisteredPages(gpu);

    SleepRegistrationTests() {
        super(256 * MIB);
    }

    private MemoryPool pool() {
        return builder().spec("caching:page_size=2MiB").source(source).open();
    }

    @Test
    void registrationsAreUndoneAndRedone() {
        try (MemoryPool pool = pool()) {
            long block = pool.allocate(20 * MIB, DEVICE, stream);
            Map<Long, Long> before = Map.copyOf(source.registered);
            pool.sleep(SleepMode.DROP);
            assertThat(source.registered).isEmpty();
            pool.wake();
            assertThat(source.registered.keySet()).isEqualTo(before.keySet());
            memory.free(block, stream);
        }
    }

    @Test
    void whatSomebodyNeedsWhereItIsStaysAndIsTold() {
        try (MemoryPool pool = pool()) {
            long block = pool.allocate(20 * MIB, DEVICE, stream);
            gpu.copies().fillBytes(DEVICE, block, (byte) 3, 20 * MIB, stream);
            source.inUse.add(block + 4 * MIB);
            TrimResult slept = pool.sleep(SleepMode.KEEP);
            assertThat(slept.leftBytes(Reason.PINNED)).isEqualTo(PAGE);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(PAGE);
            assertThat(source.registered).containsOnlyKeys(block + 4 * MIB);

            source.inUse.clear();
            slept = pool.sleep(SleepMode.KEEP); // tries that again
            assertThat(slept.returnedBytes()).isEqualTo(PAGE);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);

            pool.wake();
            assertThat(source.registered).hasSize(10);
            assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(236 * MIB);
            memory.free(block, stream);
        }
    }

    @Test
    void whatTheDriverWillNotUnmapIsRegisteredStill() {
        try (MemoryPool pool = pool()) {
            memory.free(pool.allocate(20 * MIB, DEVICE, stream), stream);
            Set<Long> before = Set.copyOf(source.registered.keySet());
            gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, io.cistern.cuda.CudaResult.UNKNOWN);
            assertThat(pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isZero();
            assertThat(source.registered.keySet()).isEqualTo(before);
        }
    }

    @Test
    void aSleepThatFailsRegistersAgain() {
        try (MemoryPool pool = pool()) {
            long block = pool.allocate(20 * MIB, DEVICE, stream);
            Set<Long> before = Set.copyOf(source.registered.keySet());
            gpu.faults().failOn(DriverCall.MEM_UNMAP, 5, 1, io.cistern.cuda.CudaResult.UNKNOWN);
            org.assertj.core.api.Assertions.assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP))
                    .isInstanceOf(io.cistern.cuda.CudaException.class);
            assertThat(source.registered.keySet()).isEqualTo(before);
            memory.free(block, stream);
        }
    }
}
