package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.OutOfMemoryArbiter;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// An allocator that throws when it is asked to give back idle memory.
final class ReclaimFailureTests {
    private static final RuntimeException BROKEN = new IllegalStateException("in a test");

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private RuntimeException thrown = BROKEN;
    private boolean hasMemory;
    private boolean hasMemoryAtLast;
    private int attempts;
    private int arbitrations;
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new BrokenProvider()), List.of()))
            .open();

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    private final class BrokenProvider implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "broken";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new BrokenAllocator();
        }
    }

    private final class BrokenAllocator implements DeviceAllocator, MemoryReclaim, OutOfMemoryArbiter {
        @Override
        public long arbitrate(DeviceOutOfMemoryException refusal, LongSupplier attempt) {
            arbitrations++;
            for (int again = 0; again < attempts; again++) {
                try {
                    return attempt.getAsLong();
                } catch (DeviceOutOfMemoryException refused) {
                    assertThat(refused.isByLimit()).isFalse();
                }
            }
            hasMemory |= hasMemoryAtLast;
            return attempt.getAsLong();
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (hasMemory) {
                return 256;
            }
            throw new DeviceOutOfMemoryException(byteSize, device, "");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            throw thrown;
        }

        @Override
        public void failed(DeviceOutOfMemoryException refusal) {
            throw thrown;
        }

        @Override
        public void close() {}
    }

    @Test
    void theCallerGetsTheRefusalAndFindsWhatWasThrown() {
        assertThatThrownBy(() -> memory.allocate(100, 0, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .satisfies(refusal -> assertThat(refusal.getSuppressed()).containsOnly(BROKEN));
    }

    @Test
    void theStepsBehindAreTakenAllTheSame() {
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, byteSize) -> {
            hasMemory = true;
            return byteSize;
        });
        long block = memory.allocate(100, 0, 0);
        assertThat(block).isNotZero();
        memory.free(block, 0);
    }

    @Test
    void onlyWhatTheLastAttemptGaveAndThrewIsTold() {
        memory.listeners().onMemoryPressure((_, _) -> 10);
        int thrownOnce = refusal().getSuppressed().length;
        attempts = 5;
        assertThat(refusal().getSuppressed()).hasSize(thrownOnce);
        assertThat(refusal().steps())
                .filteredOn(tried -> tried.step() == ReclaimStep.CALLBACKS)
                .extracting(TriedStep::byteSize)
                .containsExactly(10L);
    }

    @Test
    void anArbiterMayServeTheRequest() {
        attempts = 2;
        hasMemoryAtLast = true;
        long block = memory.allocate(100, 0, 0);
        assertThat(block).isEqualTo(256);
        assertThat(arbitrations).isOne();
        memory.free(block, 0);
    }

    @Test
    void anArbiterIsNotAskedWithinAStepNorAboutALimit() {
        memory.listeners().onMemoryPressure((_, _) -> {
            assertThatThrownBy(() -> memory.allocate(100, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(arbitrations).isZero();
            return 0;
        });
        memory.limits().device(0).setByteSize(50);
        assertThatThrownBy(() -> memory.allocate(100, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(arbitrations).isZero();
    }

    @Test
    void memoryThatNoFigureShowsIsFound() {
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> {
            hasMemory = true;
            return 0;
        });
        long block = memory.allocate(100, 0, 0);
        assertThat(arbitrations).isZero();
        memory.free(block, 0);
    }

    private DeviceOutOfMemoryException refusal() {
        return catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(100, 0, 0));
    }

    @Test
    void theEndOfTheContextIsTold() {
        thrown = new CudaException(DriverCall.CONTEXT_SYNCHRONIZE, CudaResult.ILLEGAL_ADDRESS.code(), "in a test");
        assertThatThrownBy(() -> memory.allocate(100, 0, 0)).isSameAs(thrown);
    }
}
