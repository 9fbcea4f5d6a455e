package io.cistern.cli.allocators;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The host writes and reads memory wherever the allocator puts it.
final class HostCopyTests {
    private static final int BYTES = 100_000;

    static List<String> specs() {
        return EveryAllocator.specs();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void bytesComeBackAsTheyWent(String spec) {
        byte[] bytes = new byte[BYTES];
        for (int i = 0; i < BYTES; i++) {
            bytes[i] = (byte) (i * 31);
        }
        try (SimulatedGpu gpu = EveryAllocator.gpu();
                DeviceMemory memory = EveryAllocator.memory(gpu)) {
            memory.setCurrent(spec);
            try (CudaStream stream = CudaStream.open(memory, 0);
                    DeviceBuffer one = DeviceBuffer.allocate(memory, BYTES, 0, stream.handle());
                    DeviceBuffer two = DeviceBuffer.allocate(memory, BYTES, 0, stream.handle());
                    PinnedBuffer pinned = PinnedMemory.of(memory).allocate(BYTES);
                    Arena arena = Arena.ofConfined()) {
                one.copyFrom(MemorySegment.ofArray(bytes));
                two.copyFrom(one);
                byte[] back = new byte[BYTES];
                two.copyTo(MemorySegment.ofArray(back));
                assertThat(back).isEqualTo(bytes);

                MemorySegment pageable = arena.allocate(BYTES);
                two.copyTo(pageable);
                assertThat(pageable.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes);

                Arrays.fill(back, (byte) 0);
                one.fill((byte) 0);
                two.copyTo(pinned, stream.handle(), CopyMode.BLOCKING);
                one.copyFrom(pinned, stream.handle(), CopyMode.BLOCKING);
                one.copyTo(MemorySegment.ofArray(back));
                assertThat(back).isEqualTo(bytes);
            }
            assertThat(gpu.misuses()).isEmpty();
        }
    }
}
