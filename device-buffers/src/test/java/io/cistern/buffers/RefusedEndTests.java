package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// The driver refuses once to end what a call made: nothing stays.
final class RefusedEndTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final long stream = gpu.streams().create(0);
    private final long other = gpu.streams().create(0);
    private final Map<String, Long> before = gpu.heldObjects();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .open();

    @BeforeEach
    void open() {
        memory.setCurrent("direct");
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(gpu.faults().failedCalls()).isOne();
        memory.close();
        assertThat(gpu.heldObjects()).isEqualTo(before);
        gpu.close();
    }

    private void refuseOnce(DriverCall call) {
        gpu.faults().failOn(call, 0, 1, CudaResult.UNKNOWN);
    }

    @Test
    void aModuleIsUnloaded() {
        CudaModule module = CudaModule.load(memory, 0, MemoryKernels.ptx());
        refuseOnce(DriverCall.MODULE_UNLOAD);
        module.close();
    }

    @Test
    void aMoveToAnotherStreamLeavesNoEvent() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1 << 20, 0, stream);
        refuseOnce(DriverCall.EVENT_DESTROY);
        buffer.moveToStream(other).close();
    }

    @Test
    void aCopyBetweenDevicesLeavesNoEvent() {
        try (DeviceBuffer source = DeviceBuffer.allocate(memory, 1 << 20, 0, stream);
                DeviceBuffer target = DeviceBuffer.allocate(memory, 1 << 20, 1, 0)) {
            refuseOnce(DriverCall.EVENT_DESTROY);
            target.copyFrom(source, stream);
        }
    }

    /// The copy takes a while, and the target's memory goes to others at once.
    private void assertThatTheCopyIsOver(
            DriverCall refused, int callsBefore, BiConsumer<DeviceBuffer, DeviceBuffer> copy) {
        try (DeviceBuffer source = DeviceBuffer.allocate(memory, 1 << 20, 0, stream)) {
            DeviceBuffer target = DeviceBuffer.allocate(memory, 1 << 20, 1, 0);
            source.fill((byte) 5);
            gpu.keepBusy(0, stream, 1_000_000);
            gpu.faults().failOn(refused, callsBefore, 1, CudaResult.UNKNOWN);
            copy.accept(target, source);
            byte[] bytes = new byte[1];
            target.slice(0, 1).copyTo(MemorySegment.ofArray(bytes));
            assertThat(bytes).containsExactly(5);
            target.close();
        }
    }

    @Test
    void aCopyBetweenDevicesIsOverIfNothingCanBeOrderedAfterIt() {
        assertThatTheCopyIsOver(DriverCall.EVENT_RECORD, 1, DeviceBuffer::copyFrom);
    }

    @Test
    void aCopyToAnotherDeviceIsOverIfItsEndCanNotBeMarked() {
        assertThatTheCopyIsOver(DriverCall.EVENT_RECORD, 0, (target, source) -> target.copyFrom(source, stream));
    }
}
