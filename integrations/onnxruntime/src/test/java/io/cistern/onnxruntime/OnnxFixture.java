package io.cistern.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

/// A simulated GPU, its memory, and a fake ONNX Runtime that the memory is registered with.
final class OnnxFixture implements AutoCloseable {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;

    final SimulatedGpu gpu;
    final DeviceMemory memory;
    final FakeOnnxRuntime fake;
    final OnnxMemory onnx;

    /// @param allocator what is current
    OnnxFixture(Path folder, long capacityBytes, String allocator) {
        gpu = SimulatedGpu.builder().devices(1).capacityBytes(capacityBytes).build();
        memory = DeviceMemory.builder(gpu).open();
        memory.setCurrent(allocator);
        fake = new FakeOnnxRuntime(folder);
        onnx = OnnxMemory.register(fake.api(), memory, DEVICE);
    }

    /// Makes a stream as ONNX Runtime does, of which nobody is told.
    long foreignStream() {
        return gpu.streams().create(DEVICE);
    }

    void fill(long address, int value, long byteSize, long stream) {
        gpu.copies().fillBytes(DEVICE, address, (byte) value, byteSize, stream);
    }

    /// Returns whether all bytes of a block have a value, after all work.
    boolean holds(long address, int value, long byteSize, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(byteSize);
            gpu.copies().toHost(DEVICE, host, address, byteSize, stream);
            gpu.devices().synchronize(DEVICE);
            for (long i = 0; i < byteSize; i++) {
                if (host.get(ValueLayout.JAVA_BYTE, i) != (byte) value) {
                    return false;
                }
            }
            return true;
        }
    }

    @Override
    public void close() {
        onnx.close();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("events");
        gpu.close();
    }
}
