package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.reports.OwnJvm;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A simulated GPU needs no native code, so a program over it does without the access.
class DeniedNativeAccessTests {
    /// Uses a pool and closes it, twice: the second fence knows already that the system is not to be asked.
    static final class UsingPools {
        public static void main(String[] arguments) {
            DeviceMemory memory = DeviceMemory.builder(SimulatedGpu.builder().build())
                    .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                    .open();
            for (int i = 0; i < 2; i++) {
                try (MemoryPool pool = MemoryPool.builder(memory).spec("direct").open();
                        Scope _ = pool.enter()) {
                    memory.free(memory.allocate(1000, 0, 0), 0);
                }
            }
            memory.close();
            System.out.println("closed");
        }
    }

    @Test
    void poolsAreUsedAndClosedWithoutIt() throws Exception {
        assertThat(OwnJvm.run(UsingPools.class, "--illegal-native-access=deny")).containsExactly("closed");
    }
}
