package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/// The binding on a real driver and GPU: that its kernels load, order and count there, and that host code runs.
@Tag("gpu")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class RealDriverGpuTests {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();
    private static final long WORDS = 3_000_017;

    private CudaDriver driver;
    private MemoryKernels kernels;
    private long stream;

    @BeforeAll
    void open() {
        driver = new NativeDriverProvider().open();
        kernels = MemoryKernels.load(driver, 0);
        stream = driver.streams().create(0);
    }

    @AfterAll
    void close() {
        driver.streams().destroy(0, stream);
        kernels.close();
        driver.close();
    }

    @Test
    void everyFeatureHasAnAnswer() {
        assertThat(driver.capabilities().devices()).hasSize(driver.devices().count());
        assertThat(driver.capabilities().devices().getFirst().features()).hasSize(DriverFeature.values().length);
    }

    @Test
    void aSequenceIsWrittenAndItsChangesAreCounted() {
        long words = driver.memory().allocate(0, WORDS * 4);
        MemorySegment counters = driver.memory().allocateHost(0, 16);
        counters.fill((byte) 0);
        kernels.writeSequence(words, WORDS, -5, stream);
        driver.copies().fillWords(0, words + 4 * (WORDS - 3), 7, 3, stream);
        kernels.countSequenceMismatches(words, WORDS, -5, counters.address(), stream);
        kernels.countMismatches(words, WORDS, 7, counters.address() + 8, stream);
        driver.streams().synchronize(0, stream);
        assertThat(counters.getAtIndex(ValueLayout.JAVA_LONG, 0)).isEqualTo(3);
        // Three words were set to 7, and the sequence from -5 passes 7 once.
        assertThat(counters.getAtIndex(ValueLayout.JAVA_LONG, 1)).isEqualTo(WORDS - 4);
        driver.memory().freeHost(0, counters);
        driver.memory().free(0, words);
    }

    @Test
    void aLatchHoldsItsStreamAndHostCodeRunsBehindIt() throws InterruptedException {
        CountDownLatch ran = new CountDownLatch(1);
        MemorySegment flag = driver.memory().allocateHost(0, Integer.BYTES);
        FLAG.setVolatile(flag, 0L, 0);
        kernels.latch(flag.address(), stream);
        try {
            driver.streams().launchHostFunction(0, stream, ran::countDown);
            assertThat(driver.streams().isIdle(0, stream)).isFalse();
        } finally {
            FLAG.setVolatile(flag, 0L, 1);
        }
        assertThat(ran.await(1, TimeUnit.MINUTES)).isTrue();
        driver.streams().synchronize(0, stream);
        assertThat(driver.streams().isIdle(0, stream)).isTrue();
        driver.memory().freeHost(0, flag);
    }

    @Test
    void allocationInStreamOrder() {
        long address = driver.pools().allocate(0, 1 << 20, stream);
        assertThat(address % 256).isZero();
        driver.copies().fillBytes(0, address, (byte) 1, 1 << 20, stream);
        driver.pools().free(0, address, stream);
        driver.streams().synchronize(0, stream);
    }
}
