package io.cistern.suites.driver;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import org.junit.jupiter.api.BeforeEach;

/// Provides reservations, handles and mappings that are undone after the test, whatever order the
/// test made them in.
abstract class VirtualMemoryContractTests extends DriverContractTests {
    /// The granularity in bytes. Sizes and addresses are given in pages of this size.
    long page;

    VirtualMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void askGranularity() {
        page = driver.virtualMemory().granularity(PhysicalMemory.onDevice(DEVICE), false);
    }

    long reserve(long pages) {
        long address = driver.virtualMemory().reserve(DEVICE, pages * page, 0, 0);
        afterwards(() -> driver.virtualMemory().freeReservation(DEVICE, address, pages * page));
        return address;
    }

    long create(long pages) {
        long handle = driver.virtualMemory().create(pages * page, PhysicalMemory.onDevice(DEVICE));
        afterwards(() -> driver.virtualMemory().release(DEVICE, handle));
        return handle;
    }

    void map(long address, long pages, long handle) {
        driver.virtualMemory().map(DEVICE, address, pages * page, handle);
        afterwards(() -> driver.virtualMemory().unmap(DEVICE, address, pages * page));
    }

    void open(long address, long pages) {
        allow(address, pages, AccessRights.READ_WRITE);
    }

    void allow(long address, long pages, AccessRights rights) {
        driver.virtualMemory().setAccess(DEVICE, address, pages * page, MemoryLocation.device(DEVICE), rights);
    }

    AccessRights rights(long address) {
        return driver.virtualMemory().access(DEVICE, address, MemoryLocation.device(DEVICE));
    }

    /// Reserves addresses, creates memory, maps it and grants access.
    long mapped(long pages) {
        long address = reserve(pages);
        map(address, pages, create(pages));
        open(address, pages);
        return address;
    }
}
