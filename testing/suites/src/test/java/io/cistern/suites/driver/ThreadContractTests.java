package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.cuda.PointerAttribute;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;

/// Any thread may call: the context is current on platform threads and on virtual ones, whichever
/// OS thread carries them.
abstract class ThreadContractTests extends DriverContractTests {
    private static final int ROUNDS = 50;

    ThreadContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void platformThreadsWorkSideBySide() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
            runEach(threads, 8);
        }
    }

    @Test
    void virtualThreadsWorkSideBySide() throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            runEach(threads, 64);
        }
    }

    private void runEach(ExecutorService threads, int tasks) throws InterruptedException, ExecutionException {
        List<Future<AddressRange>> results = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            results.add(threads.submit(roundTrips(task)));
        }
        for (Future<AddressRange> result : results) {
            assertThat(result.get().byteSize()).isEqualTo(64 * KIB);
        }
    }

    /// Works on a stream of its own and parks between any two calls. No other task may disturb it.
    private Callable<AddressRange> roundTrips(int task) {
        return () -> {
            long stream = driver.streams().create(DEVICE);
            long address = driver.memory().allocate(DEVICE, 64 * KIB);
            try (HostBytes bytes = HostBytes.pinned(driver, DEVICE, 64 * KIB)) {
                for (int round = 0; round < ROUNDS; round++) {
                    driver.copies().fillBytes(DEVICE, address, (byte) (task + round), 64 * KIB, stream);
                    LockSupport.parkNanos(1);
                    assertThat(bytes.readFrom(address, stream).holdsOnly((byte) (task + round)))
                            .isTrue();
                }
                return driver.memory().range(DEVICE, address);
            } finally {
                driver.memory().free(DEVICE, address);
                driver.streams().destroy(DEVICE, stream);
            }
        };
    }

    @Test
    void oneThreadServesSeveralDevices() {
        int count = driver.devices().count();
        List<Long> addresses = new ArrayList<>();
        for (int device = 0; device < count; device++) {
            addresses.add(linear(device, MIB));
        }
        for (int device = 0; device < count; device++) {
            assertThat(driver.memory().attribute(device, PointerAttribute.DEVICE_ORDINAL, addresses.get(device)))
                    .isEqualTo(device);
        }
    }

    @Test
    void memoryIsFreedByAnotherThread() {
        long before = driver.memory().freeBytes(DEVICE);
        long address = driver.memory().allocate(DEVICE, 64 * MIB);
        join(Thread.ofPlatform().start(() -> driver.memory().free(DEVICE, address)));
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void aThreadWithoutAContextAllocatesFromAPoolOnAStreamOfAnother(TestReporter reporter) {
        long pool = pool();
        long stream = stream();
        join(Thread.ofPlatform().start(() -> pairOn(pool, stream, "no context current", reporter)));
    }

    @Test
    void aContextOfAnotherDeviceIsLeftCurrentAndDoesNotMatterToAPool(TestReporter reporter) {
        assumeTrue(driver.devices().count() > 1, "one device alone");
        long pool = pool();
        long stream = stream();
        join(Thread.ofPlatform().start(() -> {
            driver.devices().enterContext(1);
            pairOn(pool, stream, "another device's context current", reporter);
            assertThat(driver.devices().enterContext(1))
                    .isEqualTo(driver.devices().primaryContext(1));
        }));
    }

    /// Reports the number of calls: 1 if the driver needs no context.
    private void pairOn(long pool, long stream, String where, TestReporter reporter) {
        long before = driver.calls().of(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC);
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        long calls = driver.calls().of(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC) - before;
        assertThat(calls).isBetween(1L, 2L);
        driver.pools().free(DEVICE, address, stream);
        if (!driver.simulated()) {
            reporter.publishEntry("calls of an allocation with " + where, Long.toString(calls));
        }
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.DEVICE_ORDINAL, again(pool, stream)))
                .isEqualTo(DEVICE);
    }

    private long again(long pool, long stream) {
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        afterwards(() -> driver.pools().free(DEVICE, address, stream));
        return address;
    }
}
