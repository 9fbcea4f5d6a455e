package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.jvm.JavaProgram;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A simulated GPU needs no native code, so copies over it do without the access.
class DeniedNativeAccessTests {
    static final class CopyingAnArray {
        public static void main(String[] arguments) {
            DeviceMemory memory = DeviceMemory.builder(SimulatedGpu.builder().build())
                    .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
                    .open();
            memory.setCurrent("direct");
            byte[] back = new byte[1000];
            try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, 0)) {
                buffer.copyFrom(MemorySegment.ofArray(new byte[1000]));
                buffer.copyTo(MemorySegment.ofArray(back));
            }
            memory.close();
            System.out.println("closed");
        }
    }

    @Test
    void anArrayIsCopiedWithoutIt() throws Exception {
        List<String> options =
                List.of("--illegal-native-access=deny", "--class-path", System.getProperty("java.class.path"));
        assertThat(new JavaProgram(CopyingAnArray.class.getName(), options).run())
                .containsExactly("closed");
    }
}
