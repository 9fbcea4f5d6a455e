package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.Copies.Piece;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// Copies and fills carry the right bytes, in stream order.
abstract class CopyContractTests extends DriverContractTests {
    private static final long[] ODD_SIZES = {1, 2, 3, 5, 255, 257, 4095, 4097, 65_537, (1 << 20) + 3};

    CopyContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void bytesGoThereAndBackAtAnySizeAndOffset() {
        long stream = stream();
        for (long byteSize : ODD_SIZES) {
            long address = linear(byteSize + 16) + 7;
            HostBytes sent = host(byteSize).withRandomContents(new Random(byteSize));
            HostBytes received = host(byteSize);
            driver.copies().toDevice(DEVICE, address, sent.segment(), byteSize, stream);
            assertThat(received.readFrom(address, stream).bytes())
                    .as("%s bytes", byteSize)
                    .isEqualTo(sent.bytes());
        }
    }

    @Test
    void bytesGoFromOneAllocationToAnother() {
        long stream = stream();
        for (long byteSize : ODD_SIZES) {
            long source = linear(byteSize + 8) + 1;
            long target = linear(byteSize + 8) + 5;
            HostBytes sent = host(byteSize).withRandomContents(new Random(byteSize));
            driver.copies().toDevice(DEVICE, source, sent.segment(), byteSize, stream);
            driver.copies().onDevice(DEVICE, target, source, byteSize, stream);
            assertThat(host(byteSize).readFrom(target, stream).bytes()).isEqualTo(sent.bytes());
        }
    }

    @Test
    void memoryThatIsNotPinnedCanBeCopiedToo() {
        long stream = stream();
        long address = linear(12_345);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(12_345).fill((byte) 3);
            driver.copies().toDevice(DEVICE, address, memory, memory.byteSize(), stream);
            synchronize(stream);
            memory.fill((byte) 0);
            driver.copies().toHost(DEVICE, memory, address, memory.byteSize(), stream);
            synchronize(stream);
            assertThat(memory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(3);
        }
    }

    @Test
    void aFillOfBytesLeavesItsNeighboursAlone() {
        long stream = stream();
        for (long byteSize : ODD_SIZES) {
            long address = linear(byteSize + 16);
            driver.copies().fillBytes(DEVICE, address, (byte) 1, byteSize + 16, stream);
            driver.copies().fillBytes(DEVICE, address + 7, (byte) 0xAB, byteSize, stream);
            byte[] expected = HostBytes.filled(byteSize + 16, 1);
            java.util.Arrays.fill(expected, 7, 7 + (int) byteSize, (byte) 0xAB);
            assertThat(host(byteSize + 16).readFrom(address, stream).bytes()).isEqualTo(expected);
        }
    }

    @Test
    void aFillOfWordsSetsSoManyWords() {
        long stream = stream();
        long address = linear(64);
        driver.copies().fillBytes(DEVICE, address, (byte) 0, 64, stream);
        driver.copies().fillWords(DEVICE, address + 4, 0x1234_5678, 14, stream);
        int[] expected = HostBytes.filledWords(16, 0x1234_5678);
        expected[0] = 0;
        expected[15] = 0;
        assertThat(host(64).readFrom(address, stream).words()).isEqualTo(expected);
    }

    @Test
    void aFillOfShortsSetsSoManyOfThemAtAnyMultipleOfTwo() {
        long stream = stream();
        long address = linear(64);
        driver.copies().fillBytes(DEVICE, address, (byte) 0, 64, stream);
        driver.copies().fillShorts(DEVICE, address + 2, (short) 0xABCD, 5, stream);
        byte[] expected = new byte[64];
        for (int at = 2; at < 12; at += 2) {
            expected[at] = (byte) 0xCD;
            expected[at + 1] = (byte) 0xAB;
        }
        assertThat(host(64).readFrom(address, stream).bytes()).isEqualTo(expected);
        assertFails(
                () -> driver.copies().fillShorts(DEVICE, address + 1, (short) 1, 4, stream),
                DriverCall.MEMSET_D16_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void wordsAreFilledAtMultiplesOfFourOnly() {
        long stream = stream();
        long address = linear(64);
        assertFails(
                () -> driver.copies().fillWords(DEVICE, address + 2, 1, 4, stream),
                DriverCall.MEMSET_D32_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void nothingIsWrittenBeyondAnAllocation() {
        long stream = stream();
        long address = linear(1000);
        HostBytes bytes = host(2000);
        assertFails(
                () -> driver.copies().fillBytes(DEVICE, address, (byte) 1, 1001, stream),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.copies().fillBytes(DEVICE, address + 1000, (byte) 1, 1, stream),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.copies().toHost(DEVICE, bytes.segment(), address, 2000, stream),
                DriverCall.MEMCPY_DTOH_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void freedMemoryIsNotWritten() {
        long stream = stream();
        long address = driver.memory().allocate(DEVICE, 4 * MIB);
        driver.memory().free(DEVICE, address);
        assertFails(
                () -> driver.copies().fillBytes(DEVICE, address, (byte) 1, 512, stream),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void zeroBytesDoNothing() {
        long stream = stream();
        long address = linear(64);
        HostBytes bytes = host(64);
        driver.copies().fillBytes(DEVICE, address, (byte) 9, 64, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 0, stream);
        driver.copies().fillShorts(DEVICE, address, (short) 1, 0, stream);
        driver.copies().fillWords(DEVICE, address, 1, 0, stream);
        driver.copies().toDevice(DEVICE, address, bytes.segment(), 0, stream);
        driver.copies().onDevice(DEVICE, address, address + 32, 0, stream);
        driver.copies().toHost(DEVICE, bytes.segment(), address, 0, stream);
        assertThat(bytes.readFrom(address, stream).holdsOnly(9)).isTrue();
    }

    @Test
    void rowsAreCopiedAndWhatLiesBetweenThemStays() {
        long stream = stream();
        HostBytes sent = host(7 * 100).withRandomContents(new Random(7));
        HostBytes received = host(7 * 64);
        long image = linear(7 * 256);
        driver.copies().fillBytes(DEVICE, image, (byte) 9, 7 * 256, stream);
        driver.copies().rows(DEVICE, image + 3, 256, sent.segment().address() + 20, 100, 60, 7, stream);
        driver.copies().rows(DEVICE, received.segment().address(), 64, image, 256, 64, 7, stream);
        synchronize(stream);
        for (int row = 0; row < 7; row++) {
            byte[] expected = HostBytes.filled(64, 9);
            System.arraycopy(sent.bytes(), 100 * row + 20, expected, 3, 60);
            assertThat(java.util.Arrays.copyOfRange(received.bytes(), 64 * row, 64 * row + 64))
                    .isEqualTo(expected);
        }
    }

    @Test
    void rowsDoNotOverlapTheirOwnNext() {
        long stream = stream();
        long image = linear(4096);
        long other = linear(4096);
        assertFails(
                () -> driver.copies().rows(DEVICE, image, 32, other, 64, 64, 4, stream),
                DriverCall.MEMCPY_2D_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void piecesOfABatchAreCopiedInStreamOrder() {
        assumeTrue(driver.copies().takesBatches(), "this driver has no batches of copies");
        long stream = stream();
        HostBytes sent = host(3000).withRandomContents(new Random(11));
        HostBytes received = host(3000);
        long first = linear(3000);
        long second = linear(3000);
        long there = sent.segment().address();
        driver.copies()
                .batch(
                        DEVICE,
                        List.of(
                                new Piece(first + 1, there + 1, 999),
                                new Piece(first, there, 1),
                                new Piece(first + 1000, there + 1000, 2000)),
                        stream);
        driver.copies().batch(DEVICE, List.of(new Piece(second, first, 3000)), stream);
        driver.copies()
                .batch(
                        DEVICE,
                        List.of(
                                new Piece(received.segment().address(), second, 1500),
                                new Piece(received.segment().address() + 1500, second + 1500, 1500)),
                        stream);
        synchronize(stream);
        assertThat(received.bytes()).isEqualTo(sent.bytes());
    }

    @Test
    void defaultStreamsTakeNoBatches() {
        assumeTrue(driver.copies().takesBatches(), "this driver has no batches of copies");
        List<Piece> one = List.of(new Piece(linear(64), linear(64), 64));
        assertFails(
                () -> driver.copies().batch(DEVICE, one, 0), DriverCall.MEMCPY_BATCH_ASYNC, CudaResult.INVALID_VALUE);
    }

    @Test
    void workOfOneStreamIsDoneInItsOrder() {
        long stream = stream();
        long first = linear(MIB);
        long second = linear(MIB);
        driver.copies().fillBytes(DEVICE, first, (byte) 1, MIB, stream);
        driver.copies().onDevice(DEVICE, second, first, MIB, stream);
        driver.copies().fillBytes(DEVICE, first, (byte) 2, MIB, stream);
        assertThat(host(MIB).readFrom(second, stream).holdsOnly(1)).isTrue();
        assertThat(host(MIB).readFrom(first, stream).holdsOnly(2)).isTrue();
    }

    @Test
    void nothingIsWrittenBeforeTheStreamGetsThere() {
        StreamLatch latch = latch();
        long held = stream();
        long free = stream();
        HostBytes bytes = host(4096);
        long address = linear(4096);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 4096, held);
        synchronize(held);
        latch.hold(held);
        driver.copies().fillBytes(DEVICE, address, (byte) 2, 4096, held);
        assertThat(bytes.readFrom(address, free).holdsOnly(1)).isTrue();
        latch.release();
        assertThat(bytes.readFrom(address, held).holdsOnly(2)).isTrue();
    }

    @Test
    void aFillWrittenIntoIsTheSumOfBoth() {
        long stream = stream();
        long address = linear(8 * MIB);
        driver.copies().fillBytes(DEVICE, address, (byte) 4, 8 * MIB, stream);
        driver.copies().fillWords(DEVICE, address + 3 * MIB, 0x0505_0505, 1, stream);
        driver.copies().fillBytes(DEVICE, address + 5 * MIB + 1, (byte) 6, 1, stream);
        byte[] expected = HostBytes.filled(8 * MIB, 4);
        java.util.Arrays.fill(expected, 3 << 20, (3 << 20) + 4, (byte) 5);
        expected[(5 << 20) + 1] = 6;
        assertThat(host(8 * MIB).readFrom(address, stream).bytes()).isEqualTo(expected);
    }
}
