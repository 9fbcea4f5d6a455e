package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import org.junit.jupiter.api.Test;

/// Which devices may access a mapping.
abstract class AccessRightsContractTests extends VirtualMemoryContractTests {
    AccessRightsContractTests(DriverContract suite) {
        super(suite);
    }

    private void assertRefused(long address, long byteSize) {
        assertFails(
                () -> driver.virtualMemory()
                        .setAccess(DEVICE, address, byteSize, MemoryLocation.device(DEVICE), AccessRights.READ_WRITE),
                DriverCall.MEM_SET_ACCESS,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aNewMappingIsClosed() {
        long address = reserve(1);
        map(address, 1, create(1));
        assertThat(rights(address)).isEqualTo(AccessRights.NONE);
    }

    @Test
    void rightsAreGivenChangedAndTaken() {
        long address = reserve(1);
        map(address, 1, create(1));
        for (AccessRights rights : new AccessRights[] {
            AccessRights.READ_WRITE, AccessRights.READ, AccessRights.NONE, AccessRights.READ_WRITE
        }) {
            allow(address, 1, rights);
            assertThat(rights(address)).isEqualTo(rights);
            assertThat(rights(address + page - 1)).isEqualTo(rights);
        }
    }

    @Test
    void rightsOfSeveralMappingsAreSetAtOnce() {
        long address = reserve(3);
        map(address, 1, create(1));
        map(address + page, 2, create(2));
        open(address, 3);
        assertThat(rights(address)).isEqualTo(AccessRights.READ_WRITE);
        assertThat(rights(address + 2 * page)).isEqualTo(AccessRights.READ_WRITE);
    }

    @Test
    void anUnmappedRangeHasNoRights() {
        long address = reserve(1);
        assertRefused(address, page);
        assertFails(() -> rights(address), DriverCall.MEM_GET_ACCESS, CudaResult.INVALID_VALUE);
    }

    @Test
    void aRangeThatEndsInAHoleIsRefusedAndNothingIsChanged() {
        long address = reserve(4);
        map(address, 2, create(2));
        map(address + 2 * page, 1, create(1));
        assertRefused(address, 4 * page);
        assertThat(rights(address)).isEqualTo(AccessRights.NONE);
        assertThat(rights(address + 2 * page)).isEqualTo(AccessRights.NONE);
    }

    /// The driver does not say so. Observed on an H200 with driver 580.
    @Test
    void nothingIsOpenedAfterAHoleBetweenMappings() {
        long address = reserve(4);
        map(address, 1, create(1));
        map(address + page, 1, create(1));
        map(address + 3 * page, 1, create(1));
        open(address, 4);
        assertThat(rights(address)).isEqualTo(AccessRights.READ_WRITE);
        assertThat(rights(address + page)).isEqualTo(AccessRights.READ_WRITE);
        assertThat(rights(address + 3 * page)).isEqualTo(AccessRights.NONE);
    }

    @Test
    void aPartOfAMappingIsRefusedAndNothingIsChanged() {
        long address = reserve(2);
        map(address, 2, create(2));
        assertRefused(address, page);
        assertRefused(address + page, page);
        assertRefused(address, page / 2);
        assertRefused(address, 0);
        assertThat(rights(address)).isEqualTo(AccessRights.NONE);
    }

    @Test
    void rightsEndWithTheMapping() {
        long address = reserve(1);
        long handle = create(1);
        driver.virtualMemory().map(DEVICE, address, page, handle);
        open(address, 1);
        driver.virtualMemory().unmap(DEVICE, address, page);
        map(address, 1, handle);
        assertThat(rights(address)).isEqualTo(AccessRights.NONE);
    }

    @Test
    void theDriverWritesNothingWithoutTheRight() {
        long stream = stream();
        long address = reserve(1);
        assertFillRefused(address, stream);
        map(address, 1, create(1));
        assertFillRefused(address, stream);
        allow(address, 1, AccessRights.READ);
        assertFillRefused(address, stream);
        open(address, 1);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 512, stream);
    }

    private void assertFillRefused(long address, long stream) {
        assertFails(
                () -> driver.copies().fillBytes(DEVICE, address, (byte) 1, 512, stream),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void whatMayBeReadOnlyCanBeRead() {
        long stream = stream();
        long address = mapped(1);
        driver.copies().fillBytes(DEVICE, address, (byte) 5, page, stream);
        synchronize(stream);
        allow(address, 1, AccessRights.READ);
        assertThat(host(page).readFrom(address, stream).holdsOnly(5)).isTrue();
    }
}
