package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Device memory is closed while the driver or a plug-in refuses its part: all else is closed, and what failed is
/// told.
class CloseRefusalTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(
                    List.of(new Upstream(), new Around(), new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    private final List<String> closed = new ArrayList<>();

    @AfterEach
    void nothingWasMisused() {
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void allAllocatorsAreClosedThoughTwoFail() {
        memory.open(OpenOptions.made("first", new NamedAllocator("first", false)));
        memory.open(OpenOptions.made("second", new NamedAllocator("second", true)));
        memory.open(OpenOptions.made("third", new NamedAllocator("third", true)));
        assertThatThrownBy(memory::close)
                .hasMessage("third")
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .containsExactly("allocator third was closing", "second"));
        assertThat(closed).containsExactly("third", "second", "first");
    }

    @Test
    void anotherAllocatorIsCurrentThoughTheFormerFailsToClose() {
        memory.open("upstream");
        memory.setCurrent("upstream");
        assertThatThrownBy(() -> memory.setCurrent("around")).hasMessage("upstream 2");
        assertThat(closed).containsExactly("upstream 2");
        assertThat(memory.current(1).name()).isEqualTo("around");
    }

    @Test
    void whatWaitedForACaptureIsClosedThoughTheFirstFails() {
        long captured = gpu.streams().create(0);
        GraphCapture.announce(memory, 0, captured);
        memory.open(OpenOptions.made("first", new NamedAllocator("first", true)))
                .close();
        memory.open(OpenOptions.made("second", new NamedAllocator("second", false)))
                .close();
        memory.open(OpenOptions.made("third", new NamedAllocator("third", false)));
        assertThat(closed).isEmpty();
        assertThatThrownBy(memory::close).hasMessage("first");
        assertThat(closed).containsExactly("first", "second", "third");
    }

    @Test
    void allStreamsThatWaitForEventsEndThoughOneIsRefused() {
        Allocator allocator = memory.open(OpenOptions.made("named", new NamedAllocator("named", false)));
        for (int device = 0; device < 2; device++) {
            long event = gpu.events().create(device);
            memory.freeAfter(allocator.allocate(1000, device, 0), event);
        }
        gpu.faults().failOn(0, DriverCall.STREAM_DESTROY, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(memory::close);
        assertThat(gpu.heldObjects()).containsEntry("streams", 1L);
        gpu.faults().clear();
        memory.close();
        assertThat(gpu.heldObjects()).doesNotContainKey("streams");
    }

    /// The ready stream of captures and its events, and a stream and an event of the program.
    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"STREAM_DESTROY", "EVENT_DESTROY"})
    void whatTheDriverRefusesToEndOnceIsEndedNevertheless(DriverCall call) {
        Map<String, Long> before = gpu.heldObjects();
        Allocator allocator = memory.open(OpenOptions.made("named", new NamedAllocator("named", false)));
        CudaEvent event = CudaEvent.open(memory, 0);
        memory.freeAfter(allocator.allocate(1000, 0, 0), event.handle());
        refuseOnce(call);
        event.close();
        CudaStream stream = CudaStream.open(memory, 0);
        refuseOnce(call);
        stream.close();
        refuseOnce(call);
        memory.close();
        assertThat(gpu.heldObjects()).isEqualTo(before);
    }

    @Test
    void memoryThatTheDriverRefusesTwiceGoesWithTheAllocator() {
        long before = gpu.memory().freeBytes(0);
        memory.setCurrent("direct");
        long address = memory.allocate(1 << 20, 0, 0);
        gpu.faults().failOn(DriverCall.MEM_FREE, 0, 2, CudaResult.UNKNOWN);
        memory.free(address, 0);
        memory.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(before);
    }

    @Test
    void aStreamEndsThoughAnAllocatorWillNotHearOfIt() {
        Allocator allocator = memory.open(OpenOptions.made("deaf", new NamedAllocator("deaf", true)));
        memory.freeAfter(allocator.allocate(1000, 0, 0), gpu.events().create(0));
        long live = allocator.allocate(1000, 0, 0); // so that it is told
        assertThatThrownBy(memory::close).hasMessage("deaf");
        assertThat(gpu.calls().of(DriverCall.STREAM_DESTROY)).isOne();
        memory.free(live, 0);
        assertThat(closed).containsExactly("deaf");
    }

    @Test
    void eventsOfCapturesEndThoughTheirReadyStreamStays() {
        long captured = gpu.streams().create(0);
        Allocator allocator = memory.open(OpenOptions.made("named", new NamedAllocator("named", false)));
        memory.currents().set(allocator);
        try (GraphCapture _ = GraphCapture.begin(memory, 0, captured, CaptureMode.RELAXED)) {
            memory.free(memory.allocate(1000, 0, captured), captured);
        }
        gpu.faults().failOn(DriverCall.STREAM_DESTROY, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(memory::close);
        gpu.faults().clear();
        assertThat(gpu.calls().of(DriverCall.EVENT_DESTROY))
                .isEqualTo(gpu.calls().of(DriverCall.EVENT_CREATE));
    }

    @Test
    void allThatAnAllocatorIsBuiltOnIsClosedThoughOneFails() {
        memory.open("around");
        assertThatThrownBy(memory::close).hasMessage("upstream 2");
        assertThat(closed).containsExactly("around", "upstream 2", "upstream 1");
    }

    private void refuseOnce(DriverCall call) {
        gpu.faults().failOn(call, 0, 1, CudaResult.UNKNOWN);
    }

    /// Hands out addresses; what it is told fails, if it is to.
    private final class NamedAllocator implements DeviceAllocator {
        private final String name;
        private final boolean fails;
        private int allocations;

        NamedAllocator(String name, boolean fails) {
            this.name = name;
            this.fails = fails;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return (1L << 20) + 4096L * allocations++;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public void streamClosing(int device, long stream) {
            failIfSo();
        }

        @Override
        public void close() {
            closed.add(name);
            failIfSo();
        }

        private void failIfSo() {
            if (fails) {
                throw new IllegalStateException(name);
            }
        }
    }

    private final class Upstream implements AllocatorProvider {
        private int opened;

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "upstream";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            opened++;
            return new NamedAllocator("upstream " + opened, opened == 2);
        }
    }

    private final class Around implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "around";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            context.upstream("upstream");
            context.upstream("upstream");
            return new NamedAllocator("around", false);
        }
    }
}
