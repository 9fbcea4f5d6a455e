package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.RangeAttributes;
import io.cistern.cuda.Support;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Managed memory: one address for the host and devices, prefetches, advice, and pools of it.
abstract class UnifiedMemoryContractTests extends DriverContractTests {
    private static final MemoryLocation HERE = MemoryLocation.device(DEVICE);
    private static final long SIZE = 4 * MIB;

    UnifiedMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void needsManagedMemory() {
        assume(DriverFeature.MANAGED_MEMORY);
    }

    private void assume(DriverFeature feature) {
        Support support = driver.capabilities().devices().get(DEVICE).supports(feature);
        assumeTrue(support.supported(), support.reason());
    }

    private long managed() {
        long address = driver.unifiedMemory().allocate(DEVICE, SIZE);
        afterwards(() -> driver.memory().free(DEVICE, address));
        return address;
    }

    @SuppressWarnings("restricted")
    private static MemorySegment onHost(long address) {
        return MemorySegment.ofAddress(address).reinterpret(SIZE);
    }

    @Test
    void theHostReadsWhatTheDeviceWroteAndTheOtherWayRound() {
        long stream = stream();
        long address = managed();
        driver.copies().fillWords(DEVICE, address, 0x01020304, SIZE / 4, stream);
        synchronize(stream);
        MemorySegment seen = onHost(address);
        assertThat(seen.get(ValueLayout.JAVA_INT, SIZE - 4)).isEqualTo(0x01020304);
        seen.fill((byte) 7);
        long copy = linear(SIZE);
        MemorySegment back = driver.memory().allocateHost(DEVICE, SIZE);
        afterwards(() -> driver.memory().freeHost(DEVICE, back));
        driver.copies().onDevice(DEVICE, copy, address, SIZE, stream);
        driver.copies().toHost(DEVICE, back, copy, SIZE, stream);
        synchronize(stream);
        assertThat(back.get(ValueLayout.JAVA_INT, SIZE - 4)).isEqualTo(0x07070707);
    }

    @Test
    void thePointerTellsThatItIsManaged() {
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.IS_MANAGED, managed() + MIB))
                .isOne();
        long plain = linear(SIZE);
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.IS_MANAGED, plain))
                .isZero();
    }

    @Test
    void prefetchesKeepTheContents() {
        long stream = stream();
        long address = managed();
        driver.copies().fillBytes(DEVICE, address, (byte) 5, SIZE, stream);
        driver.unifiedMemory().prefetch(DEVICE, address, SIZE, MemoryLocation.host(), stream);
        driver.unifiedMemory().prefetch(DEVICE, address, SIZE, HERE, stream);
        driver.unifiedMemory().prefetch(DEVICE, address + MIB, MIB, MemoryLocation.host(), stream);
        synchronize(stream);
        assertThat(onHost(address).get(ValueLayout.JAVA_INT, 0)).isEqualTo(0x05050505);
        assertThat(onHost(address).get(ValueLayout.JAVA_INT, SIZE - 4)).isEqualTo(0x05050505);
    }

    @ParameterizedTest
    @EnumSource(MemoryAdvice.class)
    void adviceIsTaken(MemoryAdvice advice) {
        long stream = stream();
        long address = managed();
        driver.unifiedMemory().advise(DEVICE, address, SIZE, advice, HERE);
        driver.copies().fillBytes(DEVICE, address, (byte) 8, SIZE, stream);
        synchronize(stream);
        assertThat(onHost(address).get(ValueLayout.JAVA_BYTE, SIZE - 1)).isEqualTo((byte) 8);
    }

    @Test
    void adviceAndTheLastPrefetchAreReadBack() {
        long stream = stream();
        long address = managed();
        RangeAttributes none = new RangeAttributes(false, Optional.empty(), List.of(), Optional.empty());
        assertThat(driver.unifiedMemory().attributes(DEVICE, address, SIZE)).isEqualTo(none);
        for (MemoryAdvice advice : List.of(
                MemoryAdvice.SET_READ_MOSTLY, MemoryAdvice.SET_PREFERRED_LOCATION, MemoryAdvice.SET_ACCESSED_BY)) {
            driver.unifiedMemory().advise(DEVICE, address, SIZE, advice, HERE);
        }
        driver.unifiedMemory().prefetch(DEVICE, address, SIZE, MemoryLocation.host(), stream);
        assertThat(driver.unifiedMemory().attributes(DEVICE, address, SIZE))
                .isEqualTo(new RangeAttributes(
                        true, Optional.of(HERE), List.of(HERE), Optional.of(MemoryLocation.host())));
        driver.unifiedMemory().advise(DEVICE, address, MIB, MemoryAdvice.UNSET_READ_MOSTLY, HERE);
        assertThat(driver.unifiedMemory().attributes(DEVICE, address, SIZE).readMostly())
                .isFalse();
        assertThat(driver.unifiedMemory().attributes(DEVICE, address + MIB, MIB).readMostly())
                .isTrue();
        synchronize(stream);
    }

    @Test
    void discardedMemoryIsWrittenAgain() {
        long stream = stream();
        long address = managed();
        driver.copies().fillBytes(DEVICE, address, (byte) 1, SIZE, stream);
        try {
            driver.unifiedMemory().discard(DEVICE, address + MIB, MIB, stream);
        } catch (CudaException older) {
            assumeTrue(older.result() != CudaResult.NOT_SUPPORTED, "the driver has no discard");
            throw older;
        }
        driver.unifiedMemory().prefetch(DEVICE, address + MIB, MIB, HERE, stream);
        driver.copies().fillBytes(DEVICE, address + MIB, (byte) 2, MIB, stream);
        synchronize(stream);
        assertThat(onHost(address).get(ValueLayout.JAVA_BYTE, MIB - 1)).isEqualTo((byte) 1);
        assertThat(onHost(address).get(ValueLayout.JAVA_BYTE, MIB)).isEqualTo((byte) 2);
        assertThat(onHost(address).get(ValueLayout.JAVA_BYTE, 2 * MIB)).isEqualTo((byte) 1);
    }

    @Test
    void otherMemoryIsRefused() {
        long stream = stream();
        long plain = linear(SIZE);
        assertFails(
                () -> driver.unifiedMemory().prefetch(DEVICE, plain, SIZE, HERE, stream),
                DriverCall.MEM_PREFETCH_ASYNC,
                CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.unifiedMemory().advise(DEVICE, plain, SIZE, MemoryAdvice.SET_READ_MOSTLY, HERE),
                DriverCall.MEM_ADVISE,
                CudaResult.INVALID_VALUE);
        assertFails(
                () -> driver.unifiedMemory().allocate(DEVICE, 0),
                DriverCall.MEM_ALLOC_MANAGED,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aManagedPoolServesItsDeviceInStreamOrder() {
        assume(DriverFeature.MANAGED_MEMORY_POOLS);
        long stream = stream();
        long pool = driver.pools().create(MemoryPoolProperties.managed(DEVICE));
        afterwards(() -> driver.pools().destroy(DEVICE, pool));
        long address = driver.pools().allocateFrom(DEVICE, pool, SIZE, stream);
        driver.copies().fillBytes(DEVICE, address, (byte) 3, SIZE, stream);
        synchronize(stream);
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.IS_MANAGED, address))
                .isOne();
        assertThat(onHost(address).get(ValueLayout.JAVA_BYTE, SIZE - 1)).isEqualTo((byte) 3);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
    }
}
