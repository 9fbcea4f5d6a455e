package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.testkit.StreamLatch;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Host functions run in stream order.
abstract class HostFunctionContractTests extends DriverContractTests {
    HostFunctionContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void functionsRunInTheOrderOfTheStream() {
        long stream = stream();
        List<Integer> ran = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < 100; i++) {
            int number = i;
            driver.streams().launchHostFunction(DEVICE, stream, () -> ran.add(number));
        }
        synchronize(stream);
        assertThat(ran)
                .containsExactlyElementsOf(IntStream.range(0, 100).boxed().toList());
    }

    @Test
    void aFunctionWaitsForTheWorkBeforeIt() {
        StreamLatch latch = latch();
        long stream = stream();
        AtomicInteger ran = new AtomicInteger();
        latch.hold(stream);
        driver.streams().launchHostFunction(DEVICE, stream, ran::incrementAndGet);
        assertThat(driver.streams().isIdle(DEVICE, stream)).isFalse();
        assertThat(ran).hasValue(0);
        latch.release();
        synchronize(stream);
        assertThat(ran).hasValue(1);
    }

    @Test
    void aFunctionSeesWhatWasCopiedBeforeIt() {
        long stream = stream();
        long address = linear(4096);
        HostBytes bytes = host(4096);
        List<byte[]> seen = Collections.synchronizedList(new ArrayList<>());
        driver.copies().fillBytes(DEVICE, address, (byte) 5, 4096, stream);
        driver.copies().toHost(DEVICE, bytes.segment(), address, 4096, stream);
        driver.streams().launchHostFunction(DEVICE, stream, () -> seen.add(bytes.bytes()));
        synchronize(stream);
        assertThat(seen).hasSize(1);
        assertThat(seen.getFirst()).containsOnly(5);
    }

    @Test
    void theStreamWaitsForAFunction() throws InterruptedException {
        long stream = stream();
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch leave = new CountDownLatch(1);
        AtomicInteger ran = new AtomicInteger();
        Thread host = Thread.ofPlatform().start(() -> {
            driver.streams().launchHostFunction(DEVICE, stream, () -> {
                entered.countDown();
                awaitQuietly(leave);
                ran.incrementAndGet();
            });
            synchronize(stream);
            ran.incrementAndGet();
        });
        entered.await();
        assertThat(ran).hasValue(0);
        leave.countDown();
        host.join();
        assertThat(ran).hasValue(2);
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void whatAFunctionThrowsIsSwallowed() {
        long stream = stream();
        AtomicInteger ran = new AtomicInteger();
        driver.streams().launchHostFunction(DEVICE, stream, () -> {
            throw new IllegalStateException("thrown by a test in a host function");
        });
        driver.streams().launchHostFunction(DEVICE, stream, ran::incrementAndGet);
        synchronize(stream);
        assertThat(ran).hasValue(1);
    }
}
