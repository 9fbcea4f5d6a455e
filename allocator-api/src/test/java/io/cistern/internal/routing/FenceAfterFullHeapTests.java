package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.jvm.JavaProgram;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A process whose heap was full at its first fence has fences all the same once there is room.
class FenceAfterFullHeapTests {
    @Test
    void theFirstFenceMayLackHeap() throws Exception {
        assertThat(new JavaProgram(
                                Program.class.getName(),
                                List.of(
                                        "-Xmx16m",
                                        "-XX:+UseSerialGC",
                                        "--enable-native-access=ALL-UNNAMED",
                                        "--class-path",
                                        System.getProperty("java.class.path")))
                        .run())
                .containsExactly("refused", "fence");
    }

    /// Fills its heap to the last object, asks for a fence, lets go, and asks again.
    public static final class Program {
        private static volatile Object[] held = {};

        private Program() {}

        public static void main(String[] arguments) throws ClassNotFoundException {
            if (!ProcessFence.isSupported()) {
                System.out.println("refused\nfence");
                return;
            }
            // Loaded, so that it is their initialisers that lack heap.
            for (String name : List.of("ProcessFence$Membarrier", "SystemCall$Bound")) {
                Class.forName(
                        ProcessFence.class.getPackageName() + "." + name, false, ProcessFence.class.getClassLoader());
            }
            boolean refused = false;
            try {
                while (true) {
                    held = new Object[] {held};
                }
            } catch (OutOfMemoryError full) {
                try {
                    ProcessFence.everywhere();
                } catch (OutOfMemoryError again) {
                    refused = true;
                }
            }
            held = new Object[0];
            System.out.println(refused ? "refused" : "not refused");
            ProcessFence.everywhere();
            System.out.println("fence");
        }
    }
}
