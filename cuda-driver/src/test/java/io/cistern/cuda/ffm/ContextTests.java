package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import io.cistern.cuda.Streams;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Which context is current before, during and after a call. The fake's primary contexts are 0xc0 and 0xc1.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class ContextTests {
    private static final long FOREIGN = 0xf0;
    private static final long STREAM = 0x10;

    private FakeLibrary library;
    private NativeDriver driver;

    @BeforeAll
    void compile(@TempDir Path folder) {
        library = new FakeLibrary(folder);
    }

    @BeforeEach
    void open() {
        library.setContext(0);
        driver = library.open();
    }

    @AfterEach
    void close() {
        library.fail("", 0);
        library.record(false);
        library.strict(false);
        driver.close();
    }

    @Test
    void openingRetainsNoContext() {
        assertThat(library.retained(0)).isZero();
        driver.capabilities();
        assertThat(library.retained(0)).isZero();
    }

    @Test
    void theFirstCallRetainsAndSetsThePrimaryContextAndLeavesIt() {
        library.record(true);
        driver.memory().free(1, 0x10);
        driver.memory().free(1, 0x20);
        assertThat(library.calls())
                .containsExactly(
                        "[0] cuDevicePrimaryCtxRetain(1)",
                        "[0] cuCtxGetCurrent()",
                        "[0] cuCtxSetCurrent(c1)",
                        "[c1] cuMemFree_v2(10)",
                        "[c1] cuCtxGetCurrent()",
                        "[c1] cuMemFree_v2(20)");
        assertThat(library.retained(0)).isZero();
        assertThat(library.retained(1)).isEqualTo(1);
    }

    @Test
    void anotherLibraryFindsThePrimaryContext() {
        library.setContext(FOREIGN);
        long foreign = driver.devices().enterContext(1);
        assertThat(library.context()).isEqualTo(0xc1);
        driver.devices().leaveContext(1, foreign);
        assertThat(library.context()).isEqualTo(FOREIGN);

        library.setContext(0);
        driver.devices().leaveContext(1, driver.devices().enterContext(1));
        assertThat(library.context()).isEqualTo(0xc1);
    }

    @Test
    void theCurrentDeviceIsThatOfTheCurrentContext() {
        assertThat(driver.devices().currentDevice()).as("none").isEqualTo(-1);
        library.setContext(0xc1);
        assertThat(driver.devices().currentDevice())
                .as("made current by another library")
                .isEqualTo(1);
        library.record(true);
        assertThat(driver.devices().currentDevice()).isEqualTo(1);
        assertThat(library.calls()).containsExactly("[c1] cuCtxGetCurrent()");
    }

    @Test
    void aContextThatIsNoPrimaryOneHasNoDeviceToUse() {
        library.setContext(FOREIGN);
        assertThatThrownBy(() -> driver.devices().currentDevice())
                .hasMessageContaining("0xf0")
                .asInstanceOf(type(CudaException.class))
                .returns(CudaResult.INVALID_CONTEXT, CudaException::result);
        library.fail("cuCtxGetCurrent", 4);
        assertThatThrownBy(() -> driver.devices().currentDevice())
                .asInstanceOf(type(CudaException.class))
                .returns(CudaResult.DEINITIALIZED, CudaException::result);
    }

    @Test
    void aForeignContextIsGivenBack() {
        driver.memory().free(0, 0x10);
        library.setContext(FOREIGN);
        library.record(true);
        driver.memory().free(0, 0x10);
        assertThat(library.calls())
                .containsExactly(
                        "[f0] cuCtxGetCurrent()",
                        "[f0] cuCtxSetCurrent(c0)",
                        "[c0] cuMemFree_v2(10)",
                        "[c0] cuCtxSetCurrent(f0)");
    }

    @Test
    void aForeignContextIsGivenBackWhenTheCallFails() {
        library.setContext(FOREIGN);
        library.fail("cuMemFree_v2", 1);
        assertThatThrownBy(() -> driver.memory().free(0, 0x10)).isInstanceOf(CudaException.class);
        assertThat(library.context()).isEqualTo(FOREIGN);
        library.fail("", 0);
        driver.memory().free(0, 0x10);
        assertThat(library.context()).isEqualTo(FOREIGN);
    }

    @Test
    void aPairWhoseStreamNamesTheContextAsksForNone() {
        driver.devices().primaryContext(0);
        for (long current : new long[] {0, FOREIGN, 0xc0}) {
            library.setContext(current);
            library.record(true);
            driver.pools().free(0, driver.pools().allocateFrom(0, 0xd0, 256, STREAM), STREAM);
            assertThat(library.calls())
                    .noneMatch(call -> call.contains("cuCtx"))
                    .hasSize(2);
            assertThat(library.context()).isEqualTo(current);
        }
    }

    @Test
    void aDriverThatWantsTheContextForAPairGetsIt() {
        driver.devices().primaryContext(0);
        library.strict(true);
        library.setContext(FOREIGN);
        library.record(true);
        assertThat(driver.pools().allocateFrom(0, 0xd0, 256, STREAM)).isEqualTo(0xb00000000L);
        assertThat(library.calls())
                .containsExactly(
                        "[f0] cuMemAllocFromPoolAsync(100, d0, 10)",
                        "[f0] cuCtxGetCurrent()",
                        "[f0] cuCtxGetCurrent()",
                        "[f0] cuCtxSetCurrent(c0)",
                        "[c0] cuMemAllocFromPoolAsync(100, d0, 10)",
                        "[c0] cuCtxSetCurrent(f0)");
        library.setContext(0);
        driver.pools().free(0, 0xb00000000L, STREAM);
        assertThat(library.context()).isEqualTo(0xc0);
    }

    @Test
    void aLaunchAsksForTheContextOnlyIfTheDriverWantsIt() {
        driver.devices().primaryContext(0);
        Object[] arguments = {1L, 2, 0.5f, 0.25, (short) 3, (byte) 4};
        library.setContext(FOREIGN);
        library.record(true);
        driver.modules().launch(0, 1, Modules.Grid.of(1, 1), STREAM, arguments);
        assertThat(library.calls()).singleElement().asString().startsWith("[f0] cuLaunchKernel(");
        library.strict(true);
        library.record(true);
        driver.modules().launch(0, 1, Modules.Grid.of(1, 1), STREAM, arguments);
        assertThat(library.calls())
                .anyMatch(call -> call.startsWith("[c0] cuLaunchKernel("))
                .last()
                .isEqualTo("[c0] cuCtxSetCurrent(f0)");
    }

    @Test
    void aPairThatFailsInItsOwnContextIsNotTriedAgain() {
        driver.devices().primaryContext(0);
        library.setContext(0xc0);
        library.fail("cuMemFreeAsync", 1);
        library.record(true);
        assertThatThrownBy(() -> driver.pools().free(0, 0x100, STREAM))
                .asInstanceOf(type(CudaException.class))
                .returns(CudaResult.INVALID_VALUE, CudaException::result);
        assertThat(library.calls()).containsExactly("[c0] cuMemFreeAsync(100, 10)", "[c0] cuCtxGetCurrent()");
    }

    @Test
    void defaultStreamsAreThoseOfTheCurrentContext() {
        driver.devices().primaryContext(0);
        for (long stream : new long[] {0, Streams.LEGACY_DEFAULT, Streams.PER_THREAD_DEFAULT}) {
            library.setContext(FOREIGN);
            library.record(true);
            driver.pools().free(0, 0x100, stream);
            assertThat(library.calls()).contains("[c0] cuMemFreeAsync(100, " + stream + ")");
        }
    }

    @Test
    void aContextThatCannotBeSetFailsThatCallAlone() {
        driver.devices().primaryContext(0);
        library.setContext(FOREIGN);
        library.fail("cuCtxSetCurrent", 709);
        assertThatThrownBy(() -> driver.memory().free(0, 0x10))
                .asInstanceOf(type(CudaException.class))
                .returns(CudaResult.CONTEXT_IS_DESTROYED, CudaException::result);
        library.fail("", 0);
        driver.memory().free(0, 0x10);
        assertThat(library.context()).isEqualTo(FOREIGN);
    }

    @Test
    void anOrdinalOutOfRangeIsAnInvalidDevice() {
        for (int device : new int[] {-1, 2, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> driver.memory().allocate(device, 1))
                    .asInstanceOf(type(CudaException.class))
                    .returns(CudaResult.INVALID_DEVICE, CudaException::result);
            assertThatThrownBy(() -> driver.devices().name(device))
                    .asInstanceOf(type(CudaException.class))
                    .returns(CudaResult.INVALID_DEVICE, CudaException::result);
        }
    }

    @Test
    void closingReleasesTheContextOnceAndRefusesLaterCalls() {
        driver.memory().allocate(0, 1);
        driver.memory().allocate(1, 1);
        driver.close();
        driver.close();
        assertThat(library.retained(0)).isZero();
        assertThat(library.retained(1)).isZero();
        refusedAfterClose(DriverCall.MEM_ALLOC, () -> driver.memory().allocate(0, 1));
        refusedAfterClose(DriverCall.MEM_FREE, () -> driver.memory().free(1, 0x10));
        refusedAfterClose(DriverCall.MEM_FREE_ASYNC, () -> driver.pools().free(1, 0x10, STREAM));
        refusedAfterClose(DriverCall.DEVICE_TOTAL_MEM, () -> driver.devices().totalBytes(0));
        refusedAfterClose(DriverCall.CONTEXT_SYNCHRONIZE, () -> driver.devices().synchronize(0));
    }

    private static void refusedAfterClose(DriverCall attempted, ThrowingCallable call) {
        assertThatThrownBy(call)
                .asInstanceOf(type(CudaException.class))
                .returns(attempted, CudaException::call)
                .returns(CudaResult.DEINITIALIZED, CudaException::result);
    }

    @Test
    void virtualThreadsEachSeeTheContextOfTheirDevice() throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<?>> done = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                int device = i % 2;
                done.add(threads.submit(() -> {
                    for (int round = 0; round < 20; round++) {
                        // The fake's address tells the context it was allocated in.
                        assertThat(driver.memory().allocate(device, 1)).isEqualTo(0xc0 + device);
                        LockSupport.parkNanos(1);
                    }
                }));
            }
            for (Future<?> each : done) {
                each.get();
            }
        }
    }

    @Test
    @Timeout(60)
    void aVirtualThreadThatWaitsForAStreamLeavesItsCarrier() throws Exception {
        library.gate(false);
        library.record(true);
        Thread waiting = Thread.ofVirtual().start(() -> driver.streams().synchronize(1, 0xb10c));
        String call = "[c1] cuStreamSynchronize(b10c)";
        // On its carrier it would be RUNNABLE for as long as the driver blocks.
        while (!library.calls().contains(call) || waiting.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        library.gate(true);
        waiting.join();
    }

    @Test
    void aFailureReachesTheVirtualThreadThatWaits() throws Exception {
        library.fail("cuStreamSynchronize", 700);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            assertThatThrownBy(threads.submit(() -> driver.streams().synchronize(0, 8))::get)
                    .cause()
                    .asInstanceOf(type(CudaException.class))
                    .returns(CudaResult.ILLEGAL_ADDRESS, CudaException::result);
        }
    }
}
