package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PointerAttribute;
import org.junit.jupiter.api.Test;

/// The driver's attributes of a pointer.
abstract class PointerContractTests extends DriverContractTests {
    private static final int HOST = 1;
    private static final int ON_DEVICE = 2;

    PointerContractTests(DriverContract suite) {
        super(suite);
    }

    private long attribute(PointerAttribute attribute, long address) {
        return driver.memory().attribute(DEVICE, attribute, address);
    }

    @Test
    void linearMemoryIsKnownByAnyAddressInside() {
        long address = linear(4 * MIB);
        for (long inside : new long[] {address, address + 4 * MIB - 1}) {
            assertThat(attribute(PointerAttribute.MEMORY_TYPE, inside)).isEqualTo(ON_DEVICE);
            assertThat(attribute(PointerAttribute.DEVICE_ORDINAL, inside)).isEqualTo(DEVICE);
            assertThat(attribute(PointerAttribute.RANGE_START, inside)).isEqualTo(address);
            assertThat(attribute(PointerAttribute.RANGE_SIZE, inside)).isEqualTo(4 * MIB);
            assertThat(attribute(PointerAttribute.IS_MANAGED, inside)).isZero();
            assertThat(attribute(PointerAttribute.MAPPED, inside)).isEqualTo(1);
        }
    }

    @Test
    void linearMemoryBelongsToTheContextAndToNoPool() {
        long address = linear(4 * MIB);
        assertThat(attribute(PointerAttribute.CONTEXT, address))
                .isEqualTo(driver.devices().primaryContext(DEVICE));
        assertThat(attribute(PointerAttribute.MEMPOOL_HANDLE, address)).isZero();
    }

    @Test
    void memoryOfAPoolBelongsToThePool() {
        long pool = pool();
        long stream = stream();
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        assertThat(attribute(PointerAttribute.MEMPOOL_HANDLE, address)).isEqualTo(pool);
        assertThat(attribute(PointerAttribute.MEMORY_TYPE, address)).isEqualTo(ON_DEVICE);
        assertThat(attribute(PointerAttribute.DEVICE_ORDINAL, address)).isEqualTo(DEVICE);
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void noTwoAllocationsHaveTheSameBufferId() {
        long first = driver.memory().allocate(DEVICE, 4 * MIB);
        long firstId = attribute(PointerAttribute.BUFFER_ID, first);
        driver.memory().free(DEVICE, first);
        long second = linear(4 * MIB);
        assertThat(attribute(PointerAttribute.BUFFER_ID, second)).isNotEqualTo(firstId);
    }

    @Test
    void freedMemoryIsAnInvalidValue() {
        long stream = stream();
        long linear = driver.memory().allocate(DEVICE, 4 * MIB);
        driver.memory().free(DEVICE, linear);
        long pooled = driver.pools().allocateFrom(DEVICE, pool(), MIB, stream);
        driver.pools().free(DEVICE, pooled, stream);
        for (long address : new long[] {linear, pooled}) {
            assertFails(
                    () -> attribute(PointerAttribute.MEMORY_TYPE, address),
                    DriverCall.POINTER_GET_ATTRIBUTE,
                    CudaResult.INVALID_VALUE);
        }
    }

    @Test
    void pinnedMemoryIsHostMemory() {
        assertThat(attribute(PointerAttribute.MEMORY_TYPE, host(4096).segment().address()))
                .isEqualTo(HOST);
    }

    @Test
    void anAddressNobodyAllocatedIsAnInvalidValue() {
        assertFails(
                () -> attribute(PointerAttribute.MEMORY_TYPE, 0x1234_5600L),
                DriverCall.POINTER_GET_ATTRIBUTE,
                CudaResult.INVALID_VALUE);
    }
}
