package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The host reads and writes memory of host pools and managed pools in place, as long as the buffer is open.
class HostViewTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new AsyncProvider()), List.of()))
            .open();
    private final CudaStream stream = CudaStream.open(memory, 0);

    @AfterEach
    void close() {
        stream.close();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private DeviceBuffer buffer(String spec, long byteSize) {
        return DeviceBuffer.allocate(memory.open(OpenOptions.spec(spec)), byteSize, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {"async:location=host", "async:location=host_numa:0", "async:location=managed"})
    void theHostReadsAndWritesInPlace(String spec) {
        MemorySegment view;
        try (DeviceBuffer buffer = buffer(spec, 1000);
                DeviceBuffer device = buffer("async", 1000)) {
            view = buffer.hostView();
            assertThat(view.byteSize()).isEqualTo(1000);
            assertThat(buffer.hostView()).isEqualTo(view);
            buffer.fill((byte) 5);
            stream.synchronize();
            assertThat(view.get(ValueLayout.JAVA_BYTE, 999)).isEqualTo((byte) 5);
            view.fill((byte) 7);
            device.copyFrom(buffer);
            byte[] back = new byte[1000];
            device.copyTo(MemorySegment.ofArray(back));
            assertThat(back).containsOnly(7);
            device.fill((byte) 8);
            buffer.copyFrom(device);
            stream.synchronize();
            assertThat(view.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 8);
            device.copyFrom(view);
            buffer.slice(100, 50).hostView().set(ValueLayout.JAVA_BYTE, 0, (byte) 9);
            assertThat(view.get(ValueLayout.JAVA_BYTE, 100)).isEqualTo((byte) 9);
            assertThatThrownBy(() -> view(buffer).get(ValueLayout.JAVA_BYTE, 1000))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        MemorySegment ended = view;
        assertThatIllegalStateException().isThrownBy(() -> ended.get(ValueLayout.JAVA_BYTE, 0));
    }

    private static MemorySegment view(DeviceBuffer buffer) {
        return buffer.hostView();
    }

    @Test
    void aRetainedSliceOutlivesTheViewOfItsBuffer() {
        DeviceBuffer buffer = buffer("async:location=host", 1000);
        MemorySegment whole = buffer.hostView();
        DeviceBuffer kept = buffer.retainedSlice(500, 500);
        whole.fill((byte) 3);
        buffer.close();
        assertThatIllegalStateException().isThrownBy(() -> whole.get(ValueLayout.JAVA_BYTE, 0));
        assertThat(kept.hostView().get(ValueLayout.JAVA_BYTE, 499)).isEqualTo((byte) 3);
        kept.close();
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @Test
    void memoryOfADeviceHasNoView() {
        try (DeviceBuffer buffer = buffer("async", 1000);
                DeviceBuffer empty = buffer("async:location=host", 0)) {
            assertThatThrownBy(buffer::hostView)
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("async:location=host");
            assertThat(empty.hostView().byteSize()).isZero();
        }
        DeviceBuffer closed = buffer("async:location=host", 10);
        closed.close();
        assertThatIllegalStateException().isThrownBy(closed::hostView);
    }
}
