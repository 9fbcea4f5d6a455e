package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/// Pinned host memory.
abstract class HostMemoryContractTests extends DriverContractTests {
    HostMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void pinnedMemoryIsNativeMemoryOfTheSizeAskedFor() {
        HostBytes bytes = host(1000);
        assertThat(bytes.segment().isNative()).isTrue();
        assertThat(bytes.segment().byteSize()).isEqualTo(1000);
    }

    @Test
    void aKernelWritesPinnedMemoryThroughTheSameAddress() {
        HostBytes bytes = host(64);
        long stream = stream();
        try (MemoryKernels kernels = MemoryKernels.load(driver, DEVICE)) {
            kernels.writeSequence(bytes.segment().address(), 16, 5, stream);
            synchronize(stream);
        }
        assertThat(bytes.words()).startsWith(5, 6, 7).endsWith(20);
    }

    @Test
    void pinnedMemoryCannotBeFreedTwice() {
        MemorySegment memory = driver.memory().allocateHost(DEVICE, 4096);
        driver.memory().freeHost(DEVICE, memory);
        assertFails(() -> driver.memory().freeHost(DEVICE, memory), DriverCall.MEM_FREE_HOST, CudaResult.INVALID_VALUE);
    }

    @Test
    void onlyTheStartOfPinnedMemoryIsFreed() {
        MemorySegment inside = host(4096).segment().asSlice(64);
        assertFails(() -> driver.memory().freeHost(DEVICE, inside), DriverCall.MEM_FREE_HOST, CudaResult.INVALID_VALUE);
    }

    @Test
    void pinnedMemoryTakesNoDeviceMemory() {
        long before = driver.memory().freeBytes(DEVICE);
        host(16 * MIB);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(before);
    }

    @Test
    void theDriverKnowsPinnedMemoryAsHostMemory() {
        HostBytes bytes = host(4096);
        long address = bytes.segment().address();
        assertThat(driver.memory().attribute(DEVICE, PointerAttribute.MEMORY_TYPE, address))
                .isEqualTo(1);
    }

    @Test
    void existingMemoryIsPinnedAndUnpinned() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(64 * KIB, 4096);
            driver.memory().registerHost(DEVICE, memory);
            assertFails(
                    () -> driver.memory().registerHost(DEVICE, memory),
                    DriverCall.MEM_HOST_REGISTER,
                    CudaResult.HOST_MEMORY_ALREADY_REGISTERED);
            copiesRoundTrip(memory);
            driver.memory().unregisterHost(DEVICE, memory);
            assertFails(
                    () -> driver.memory().unregisterHost(DEVICE, memory),
                    DriverCall.MEM_HOST_UNREGISTER,
                    CudaResult.HOST_MEMORY_NOT_REGISTERED);
        }
    }

    private void copiesRoundTrip(MemorySegment memory) {
        long stream = stream();
        long address = linear(memory.byteSize());
        memory.fill((byte) 77);
        driver.copies().toDevice(DEVICE, address, memory, memory.byteSize(), stream);
        synchronize(stream);
        memory.fill((byte) 0);
        driver.copies().toHost(DEVICE, memory, address, memory.byteSize(), stream);
        synchronize(stream);
        assertThat(memory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(77);
    }
}
