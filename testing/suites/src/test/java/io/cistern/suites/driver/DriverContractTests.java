package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.testkit.StreamLatch;
import java.util.ArrayDeque;
import java.util.Deque;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/// Opens the driver before each test, and afterwards frees the objects that the test got from the methods here.
@Timeout(120)
abstract class DriverContractTests {
    static final int DEVICE = 0;
    static final long KIB = 1L << 10;
    static final long MIB = 1L << 20;

    private final DriverContract suite;
    private final Deque<StreamLatch> latches = new ArrayDeque<>();
    private final Deque<Runnable> cleanups = new ArrayDeque<>();
    CudaDriver driver;

    DriverContractTests(DriverContract suite) {
        this.suite = suite;
    }

    @BeforeEach
    void openDriver() {
        driver = suite.openDriver();
    }

    /// Closes latches first, because other frees may wait for running work.
    @AfterEach
    void closeDriver() {
        latches.forEach(StreamLatch::close);
        driver.devices().synchronize(DEVICE);
        cleanups.forEach(Runnable::run);
        driver.close();
    }

    CudaDriver openAnotherDriver() {
        return suite.openDriver();
    }

    void afterwards(Runnable cleanup) {
        cleanups.push(cleanup);
    }

    /// Returns a latch. Create it before the streams are busy.
    StreamLatch latch() {
        StreamLatch latch = new StreamLatch(driver, DEVICE);
        latches.push(latch);
        return latch;
    }

    long stream() {
        return stream(DEVICE);
    }

    long stream(int device) {
        long stream = driver.streams().create(device);
        afterwards(() -> driver.streams().destroy(device, stream));
        return stream;
    }

    long event() {
        long event = driver.events().create(DEVICE);
        afterwards(() -> driver.events().destroy(DEVICE, event));
        return event;
    }

    /// Returns an event recorded at the present end of a stream.
    long eventOn(long stream) {
        long event = event();
        driver.events().record(DEVICE, event, stream);
        return event;
    }

    /// Returns memory from `cuMemAlloc`.
    long linear(long byteSize) {
        return linear(DEVICE, byteSize);
    }

    long linear(int device, long byteSize) {
        long address = driver.memory().allocate(device, byteSize);
        afterwards(() -> driver.memory().free(device, address));
        return address;
    }

    long pool() {
        long pool = driver.pools().create(MemoryPoolProperties.onDevice(DEVICE));
        afterwards(() -> driver.pools().destroy(DEVICE, pool));
        return pool;
    }

    HostBytes host(long byteSize) {
        HostBytes bytes = HostBytes.pinned(driver, DEVICE, byteSize);
        afterwards(bytes::close);
        return bytes;
    }

    void synchronize(long stream) {
        driver.streams().synchronize(DEVICE, stream);
    }

    static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for " + thread, interrupted);
        }
    }

    /// Checks that the call fails with one of the results and that the exception names the call.
    static CudaException assertFails(ThrowingCallable action, DriverCall call, CudaResult... results) {
        CudaException failure = catchThrowableOfType(CudaException.class, action);
        assertThat(failure).as("%s must fail", call.symbol()).isNotNull();
        assertThat(failure.call()).isEqualTo(call);
        assertThat(failure.result()).as(failure.getMessage()).isIn((Object[]) results);
        return failure;
    }
}
