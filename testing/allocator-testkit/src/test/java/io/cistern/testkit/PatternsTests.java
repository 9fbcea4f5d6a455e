package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PatternsTests {
    private final CudaDriver driver =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private Patterns patterns;
    private long stream;

    @BeforeEach
    void open() {
        patterns = new Patterns(driver, 0);
        stream = driver.streams().create(0);
    }

    @AfterEach
    void close() {
        patterns.close();
        driver.close();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 7, 1000, 1 << 20, (1 << 20) + 1, (5 << 20) + 3, 100 << 20})
    void anUntouchedBlockIsIntact(long byteSize) {
        long address = driver.memory().allocate(0, byteSize);
        patterns.write(address, byteSize, -7, stream);
        patterns.verify(address, byteSize, -7, stream);
        assertThat(patterns.mismatches()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 7, 1000, 1 << 20, (1 << 20) + 1, (5 << 20) + 3, 100 << 20})
    void oneByteWrittenByAnotherIsFoundWhereverItIs(long byteSize) {
        long address = driver.memory().allocate(0, byteSize);
        for (long offset : new long[] {0, byteSize / 3, byteSize / 2, byteSize - 1}) {
            patterns.write(address, byteSize, 0x1122_3344, stream);
            driver.copies().fillBytes(0, address + offset, (byte) 0x99, 1, stream);
            patterns.verify(address, byteSize, 0x1122_3344, stream);
            assertThat(patterns.mismatches())
                    .as("offset %s", offset)
                    .singleElement()
                    .asString()
                    .contains("block 0x" + Long.toHexString(address));
        }
    }

    @Test
    void eachBlockIsJudgedForItself() {
        long first = driver.memory().allocate(0, 1000);
        long second = driver.memory().allocate(0, 1000);
        patterns.write(first, 1000, 1, stream);
        patterns.write(second, 1000, 2, stream);
        patterns.verify(first, 1000, 1, stream);
        patterns.verify(second, 1000, 3, stream);
        assertThat(patterns.mismatches()).singleElement().asString().contains("pattern 3");
        assertThat(patterns.mismatches()).isEmpty();
    }

    @Test
    void moreChecksThanThereAreSlotsAreAllRead() {
        long address = driver.memory().allocate(0, 64);
        patterns.write(address, 64, 1, stream);
        for (int i = 0; i < 20_000; i++) {
            patterns.verify(address, 64, i == 3 || i == 19_999 ? 2 : 1, stream);
        }
        assertThat(patterns.mismatches()).hasSize(2);
    }
}
