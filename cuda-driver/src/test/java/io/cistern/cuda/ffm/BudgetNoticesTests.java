package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverFeature;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What the driver says of the budget, over a library that says it to whoever registers.
final class BudgetNoticesTests {
    private static final long HANDLE = 0x1_2000_0000L;

    @TempDir
    private Path folder;

    @Test
    void theBytesOverTheBudgetArriveAndNothingElse() throws InterruptedException {
        FakeLibrary library = new FakeLibrary(folder);
        BlockingQueue<Long> heard = new LinkedBlockingQueue<>();
        try (NativeDriver driver = library.open()) {
            library.record(true);
            long registration = driver.devices().onOverBudget(1, heard::add);
            assertThat(heard.poll(10, TimeUnit.SECONDS)).isEqualTo(4L << 30);
            driver.devices().endOverBudget(1, registration);
            assertThat(registration).isEqualTo(HANDLE);
            assertThat(library.callsWithoutContexts())
                    .containsExactly(
                            "cuDeviceRegisterAsyncNotification(1)",
                            "cuDeviceUnregisterAsyncNotification(1, 120000000)");
        }
        assertThat(heard).isEmpty();
    }

    @Test
    void aListenerThatThrowsHarmsNobody() throws InterruptedException {
        FakeLibrary library = new FakeLibrary(folder);
        BlockingQueue<Long> heard = new LinkedBlockingQueue<>();
        try (NativeDriver driver = library.open()) {
            driver.devices().onOverBudget(0, bytes -> {
                heard.add(bytes);
                throw new IllegalStateException("thrown by the test");
            });
            assertThat(heard.poll(10, TimeUnit.SECONDS)).isNotNull();
            driver.devices().onOverBudget(0, heard::add);
            assertThat(heard.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
    }

    @Test
    void aDriverThatRefusesIsHeard() {
        FakeLibrary library = new FakeLibrary(folder);
        library.fail("cuDeviceRegisterAsyncNotification", CudaResult.NOT_SUPPORTED.code());
        try (NativeDriver driver = library.open()) {
            assertThatThrownBy(() -> driver.devices().onOverBudget(0, _ -> {}))
                    .isInstanceOfSatisfying(
                            CudaException.class,
                            refused -> assertThat(refused.result()).isEqualTo(CudaResult.NOT_SUPPORTED));
        }
    }

    @Test
    void anOlderDriverSaysWhyNot() {
        try (NativeDriver driver = new FakeLibrary(folder, "-DWITHOUT_POOLS").open()) {
            assertThat(driver.capabilities()
                            .devices()
                            .getFirst()
                            .supports(DriverFeature.BUDGET_NOTIFICATION)
                            .reason())
                    .contains("cuDeviceRegisterAsyncNotification", "12.4");
            assertThatThrownBy(() -> driver.devices().onOverBudget(0, _ -> {}))
                    .isInstanceOfSatisfying(
                            CudaException.class,
                            refused -> assertThat(refused.result()).isEqualTo(CudaResult.NOT_SUPPORTED));
        }
    }
}
