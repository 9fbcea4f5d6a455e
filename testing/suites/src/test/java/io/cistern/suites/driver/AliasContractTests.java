package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// One handle mapped at two addresses is one memory: data written through one address is read through the
/// other, in stream order.
abstract class AliasContractTests extends VirtualMemoryContractTests {
    private static final int ROUNDS = 200;
    private long handle;
    private long here;
    private long there;
    private long words;
    private long counter;
    private MemoryKernels kernels;

    AliasContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void mapTwice() {
        handle = create(1);
        here = alias();
        there = alias();
        words = page / Integer.BYTES;
        counter = linear(8);
        kernels = MemoryKernels.load(driver, DEVICE);
        afterwards(kernels::close);
        driver.copies().fillWords(DEVICE, counter, 0, 2, io.cistern.cuda.Streams.LEGACY_DEFAULT);
        driver.devices().synchronize(DEVICE);
    }

    private long alias() {
        long address = reserve(1);
        map(address, 1, handle);
        open(address, 1);
        return address;
    }

    private void assertNoMismatches(long stream) {
        assertThat(host(8).readFrom(counter, stream).words()).containsOnly(0);
    }

    @Test
    void kernelsOfOneStreamSeeEachOthersWrites() {
        long stream = stream();
        for (int round = 0; round < ROUNDS; round++) {
            kernels.writeSequence(here, words, round, stream);
            kernels.countSequenceMismatches(there, words, round, counter, stream);
            kernels.writeSequence(there, words, -round, stream);
            kernels.countSequenceMismatches(here, words, -round, counter, stream);
        }
        assertNoMismatches(stream);
    }

    @Test
    void kernelsOfTwoStreamsSeeEachOthersWritesAfterAnEvent() {
        long first = stream();
        long second = stream();
        long written = event();
        long read = event();
        for (int round = 0; round < ROUNDS; round++) {
            driver.streams().await(DEVICE, first, read);
            kernels.writeSequence(here, words, round, first);
            driver.events().record(DEVICE, written, first);
            driver.streams().await(DEVICE, second, written);
            kernels.countSequenceMismatches(there, words, round, counter, second);
            driver.events().record(DEVICE, read, second);
        }
        assertNoMismatches(second);
    }

    @Test
    void copyEnginesReadThroughTheOtherAddress() {
        long stream = stream();
        HostBytes bytes = host(page);
        for (int round = 1; round <= 20; round++) {
            driver.copies().fillBytes(DEVICE, here, (byte) round, page, stream);
            assertThat(bytes.readFrom(there, stream).holdsOnly(round)).isTrue();
        }
    }

    @Test
    void copyEnginesWriteThroughTheOtherAddress() {
        long stream = stream();
        HostBytes bytes = host(page);
        for (int round = 1; round <= 20; round++) {
            synchronize(stream);
            bytes.segment().fill((byte) round);
            driver.copies().toDevice(DEVICE, here, bytes.segment(), page, stream);
            kernels.countMismatches(there, words, 0x0101_0101 * round, counter, stream);
        }
        assertNoMismatches(stream);
    }

    @Test
    void anAddressAddedBesideRunningWorkIsTheSameMemory() {
        StreamLatch latch = latch();
        long stream = stream();
        kernels.writeSequence(here, words, 1, stream);
        latch.hold(stream);
        kernels.writeSequence(here, words, 7, stream);
        long added = alias();
        kernels.countSequenceMismatches(added, words, 7, counter, stream);
        latch.release();
        assertNoMismatches(stream);
    }

    @Test
    void theMemoryLivesUntilTheLastAddressIsGone() {
        long stream = stream();
        driver.copies().fillBytes(DEVICE, here, (byte) 3, page, stream);
        synchronize(stream);
        driver.virtualMemory().unmap(DEVICE, here, page);
        assertThat(host(page).readFrom(there, stream).holdsOnly(3)).isTrue();
    }

    @Test
    void eachAddressHasItsOwnRights() {
        allow(here, 1, io.cistern.cuda.AccessRights.READ);
        assertThat(rights(here)).isEqualTo(io.cistern.cuda.AccessRights.READ);
        assertThat(rights(there)).isEqualTo(io.cistern.cuda.AccessRights.READ_WRITE);
    }
}
