package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.SleepMode;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// An allocator that declares all abilities and implements no method of theirs is served as one that declares none.
final class AbilityDefaultsTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new Provider("none", new Plain()), new Provider("all", new Able())), List.of()))
            .open();

    private record Provider(String name, DeviceAllocator allocator) implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return allocator;
        }
    }

    /// Has one block, and idle memory that no request fits in.
    private static class Plain implements DeviceAllocator {
        static final long ADDRESS = 1 << 20;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (byteSize > 512) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            return ADDRESS;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(4096);
        }

        @Override
        public long trim(int device, long keepBytes) {
            return 7;
        }
    }

    private static final class Able extends Plain
            implements MemoryStatistics, MemoryReclaim, StreamUses, MemorySleep, MemorySharing {}

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "all"})
    void figuresAreThoseOfTheFramework(String name) {
        Allocator allocator = memory.open(name);
        allocator.resetPeaks(0);
        allocator.resetTotals(0);
        assertThat(allocator.memoryStatistics(0))
                .hasSize(8)
                .containsEntry("allocation.all.current", 0L)
                .containsEntry("reserved_bytes.all.current", 4096L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "all"})
    void aTrimTellsWhatIsKnown(String name) {
        TrimResult result = memory.open(name).trim(0, 0, TrimMode.SYNCHRONIZE);
        assertThat(result).isEqualTo(new TrimResult(7, OptionalLong.of(4096), List.of()));
        assertThat(gpu.calls().of(DriverCall.CONTEXT_SYNCHRONIZE)).isOne();
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "all"})
    void aRefusedRequestTrimsOnceInEachStep(String name) {
        Allocator allocator = memory.open(name);
        assertThatThrownBy(() -> allocator.allocate(4096, 0, 0))
                .isInstanceOfSatisfying(DeviceOutOfMemoryException.class, failure -> {
                    assertThat(failure.steps())
                            .filteredOn(step -> step.byteSize() > 0)
                            .extracting(TriedStep::step)
                            .containsExactly(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE);
                    assertThat(failure.steps())
                            .filteredOn(step -> step.byteSize() > 0)
                            .extracting(TriedStep::byteSize)
                            .containsExactly(7L, 7L);
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "all"})
    void theStreamOfAFreeWaitsForTheOthers(String name) {
        long stream = gpu.streams().create(0);
        long address = memory.open(name).allocate(512, 0, stream);
        memory.recordUse(address, gpu.streams().create(0));
        memory.free(address, stream);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "all"})
    void itsPoolsRefuseWhatItCanNotByName(String name) {
        assertThatThrownBy(() -> MemoryPool.builder(memory)
                        .spec(name)
                        .lendsToOthers(true)
                        .open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("(" + name + ") can't lend");
        try (MemoryPool pool = MemoryPool.builder(memory).spec(name).open()) {
            assertThatThrownBy(() -> pool.sleep(SleepMode.DROP))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining(name)
                    .hasMessageContaining("can't sleep");
            assertThat(pool.isAsleep()).isFalse();
            assertThatThrownBy(() -> pool.openTo(0, 1))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining(name)
                    .hasMessageContaining("can't be opened to device 1");
        }
    }
}
