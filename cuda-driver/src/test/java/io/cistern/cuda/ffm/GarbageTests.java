package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cistern.cuda.Modules;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Calls on the way of an allocation make no garbage.
final class GarbageTests {
    private static final int WARM_UP = 50_000;
    private static final int MEASURED = 100_000;

    /// What the measurement itself may allocate; one object a call would be 1.6 million bytes.
    private static final long NOISE_BYTES = 20_000;

    private static final Modules.Grid GRID = Modules.Grid.of(1, 1);
    private static final Object[] ARGUMENTS = {1L, 2, 0.5f, 0.25, (short) 3, (byte) 4};

    @Test
    void allocateFreeFillRecordQueryWaitAndLaunchAllocateNothing(@TempDir Path folder) {
        FakeLibrary library = new FakeLibrary(folder);
        library.setContext(0);
        try (NativeDriver driver = library.open()) {
            assertThat(bytesPerRun(driver)).isLessThan(NOISE_BYTES);
            library.setContext(0xf0);
            assertThat(bytesPerRun(driver)).as("with a foreign context").isLessThan(NOISE_BYTES);
        }
    }

    private static long bytesPerRun(NativeDriver driver) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        run(driver, WARM_UP);
        long before = threads.getCurrentThreadAllocatedBytes();
        run(driver, MEASURED);
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    private static void run(NativeDriver driver, int rounds) {
        for (int i = 0; i < rounds; i++) {
            long address = driver.pools().allocate(0, 256, 0x10);
            driver.copies().fillBytes(0, address, (byte) 1, 256, 0x10);
            driver.events().record(0, 0x20, 0x10);
            driver.events().hasPassed(0, 0x20);
            driver.streams().await(0, 0x10, 0x20);
            driver.streams().isIdle(0, 0x10);
            driver.pools().free(0, address, 0x10);
            driver.pools().free(0, driver.pools().allocateFrom(0, 0xd0, 256, 0x10), 0x10);
            driver.memory().free(0, driver.memory().allocate(0, 512));
            driver.modules().launch(0, 1, GRID, 0x10, ARGUMENTS);
        }
    }
}
